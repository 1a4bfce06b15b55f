/* SPDX-License-Identifier: Apache-2.0 */
/* The list of scenarios. */
#include "scenarios.h"

#include "simulator.h"

const sim_scenario sim_scenarios[] = {
#define SCENARIO(name, about) {#name, about, scenario_##name},
#include "scenarios.inc"
#undef SCENARIO
    {0}};

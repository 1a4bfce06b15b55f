/* SPDX-License-Identifier: Apache-2.0 */
/* The scenarios' functions; scenarios.inc is the one list of them. */
#ifndef SCENARIOS_H
#define SCENARIOS_H

#define SCENARIO(name, about) void scenario_##name(void);
#include "scenarios.inc"
#undef SCENARIO

#endif

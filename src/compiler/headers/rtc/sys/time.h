/* SPDX-License-Identifier: Apache-2.0 */
/* For NVRTC, which compiles no host code: empty, so that a kernel's file may include it. */
#pragma once

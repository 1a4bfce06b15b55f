/* SPDX-License-Identifier: Apache-2.0 */
/* The C header of this name: bool is a type of C++. */
#ifndef BULKHEAD_STDBOOL_H
#define BULKHEAD_STDBOOL_H

#define __bool_true_false_are_defined 1

#endif

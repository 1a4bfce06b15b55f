/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that come from elsewhere and that people will read, perhaps on a terminal. */
#ifndef BH_BASE_PLAIN_TEXT_H
#define BH_BASE_PLAIN_TEXT_H

#include <stddef.h>

/* Replaces control characters with '?', but for newlines and tabs: a terminal would obey them. */
void bh__plain_text(char *text, size_t length);

/* The same for a text in an array of that size, which gets an end. */
void bh__plain_array(char *text, size_t size);
#define BH__PLAIN(array) bh__plain_array((array), sizeof(array))

#endif

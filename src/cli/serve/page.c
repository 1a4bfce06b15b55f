/* SPDX-License-Identifier: Apache-2.0 */
/* The page travels in the command. */
#include "cli/serve/serve.h"

__asm__(".section .rodata\n"
        ".global bh__page_html\n.global bh__page_html_end\n"
        ".hidden bh__page_html\n.hidden bh__page_html_end\n"
        "bh__page_html:\n.incbin \"" BULKHEAD_PAGE "\"\n"
        "bh__page_html_end:\n.byte 0\n.previous\n");

/* SPDX-License-Identifier: Apache-2.0 */
/* A bar that shows how far a long command has come: on standard error, if that is a terminal. */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

/* Draws it, with what is being done now behind it. */
void progress_show(unsigned done, unsigned of, const char *now);

/* Takes it away. */
void progress_end(void);

#endif

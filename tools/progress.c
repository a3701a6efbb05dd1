/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define BAR 30 /* columns */

static bool shown;

void progress_show(unsigned done, unsigned of, const char *now)
{
	static const char full[] = "##############################", empty[] = "..............................";
	const int filled = (int)(done * BAR / (of > 0 ? of : 1));
	struct winsize size = {.ws_col = 80};
	char line[256];

	if (isatty(STDERR_FILENO) == 0)
		return;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
		size.ws_col = 80;
	snprintf(line, sizeof(line), "[%.*s%.*s] %3u %%  %s", filled, full, BAR - filled, empty, done * 100 / of, now);
	/* What does not fit would begin a line that nobody takes away. */
	fprintf(stderr, "\r%.*s\033[K", size.ws_col - 1, line);
	fflush(stderr);
	shown = true;
}

void progress_end(void)
{
	if (shown)
		fputs("\r\033[K", stderr);
	shown = false;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "scratch.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Root's command may drop its rights before it loads the provider,
 * so there everyone may create files, though not list or remove others' (sticky); and it lies in /run, since root's
 * TMPDIR is often closed to others. A stranger could add numbers of his own there; the reader believes no file, and the
 * worst is a wrong sum. Anyone else's command keeps its user (set-user-ID programs ignore the variable): private.
 */
bool scratch_make(char *path, size_t size)
{
	const bool root = geteuid() == 0;
	const char *temporary = secure_getenv("TMPDIR");
	const char *const parents[] = {root ? "/run" : temporary != NULL ? temporary : "/tmp", "/tmp"};

	for (size_t i = 0; i < sizeof(parents) / sizeof(*parents); i++) {
		if (snprintf(path, size, "%s/afalgctl.XXXXXX", parents[i]) >= (int)size || mkdtemp(path) == NULL)
			continue;
		if (!root || chmod(path, 01733) == 0)
			return true;
		rmdir(path);
	}
	perror("afalgctl: a temporary directory cannot be made");
	return false;
}

void scratch_remove(const char *path)
{
	DIR *d = opendir(path);
	const struct dirent *e;

	while (d != NULL && (e = readdir(d)) != NULL)
		unlinkat(dirfd(d), e->d_name, 0);
	if (d != NULL)
		closedir(d);
	if (rmdir(path) != 0)
		fprintf(stderr, "afalgctl: %s is left behind: %s\n", path, strerror(errno));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "error.h"

#include <stdarg.h>
#include <stddef.h>

const OSSL_ITEM error_reasons[] = {
	{ERROR_CONFIG, (void *)"configuration value not allowed"},
	{ERROR_SOFTWARE, (void *)"default provider not available"},
	{ERROR_MEMORY, (void *)"out of memory"},
	{ERROR_KERNEL_HASH, (void *)"hash in the kernel failed"},
	{ERROR_KERNEL_COPY, (void *)"hash in the kernel cannot be copied"},
	{ERROR_PARAMETER, (void *)"parameter cannot be set now"},
	{ERROR_RAND, (void *)"no random bytes to be had"},
	{ERROR_RAND_USE, (void *)"random generator cannot give that"},
	{0, NULL},
};

void error_note_core(struct core_errors *errors, const OSSL_DISPATCH *f)
{
	switch (f->function_id) {
	case OSSL_FUNC_CORE_NEW_ERROR:
		errors->new_error = OSSL_FUNC_core_new_error(f);
		break;
	case OSSL_FUNC_CORE_SET_ERROR_DEBUG:
		errors->set_debug = OSSL_FUNC_core_set_error_debug(f);
		break;
	case OSSL_FUNC_CORE_VSET_ERROR:
		errors->set = OSSL_FUNC_core_vset_error(f);
		break;
	}
}

void error_raise_at(const struct core_errors *errors, const char *file, int line, const char *function, int reason,
		    const char *format, ...)
{
	va_list args;

	if (errors->new_error == NULL || errors->set_debug == NULL || errors->set == NULL)
		return;
	errors->new_error(errors->handle);
	errors->set_debug(errors->handle, file, line, function);
	va_start(args, format);
	errors->set(errors->handle, (uint32_t)reason, format, args);
	va_end(args);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What calls cost a thread, in nanoseconds of which only differences mean something. */
#ifndef PROVIDER_METER_H
#define PROVIDER_METER_H

#include <stdbool.h>
#include <stdint.h>

uint64_t meter_clock(void);

/*
 * What a call costs by the clock. In software that is the processor's time, to be corrected by meter_by_clock(): where
 * others want the processor too, most calls are not interrupted and a few take ten times as long, so that samples by
 * the clock would need hundreds for a mean.
 */
uint64_t meter_time(bool kernel);

/* What a call costs of the thread's processor time, in either lane. */
uint64_t meter_processor(bool kernel);

/* Notes that a thread needed so much time for what took so much of the processor. */
void meter_note(uint64_t passed, uint64_t used);

/* The time that so much of the processor takes at present, while others want it too. */
uint64_t meter_by_clock(uint64_t used);

void meter_forget(void); /* for tests */

#endif

/*
 * fault.h
 *		Named points at which a test stops the engine, to kill it just there.
 *
 * Only in builds with AR_FAULT_POINTS; nothing otherwise.
 */
#ifndef AR_FAULT_H
#define AR_FAULT_H

#ifdef AR_FAULT_POINTS
extern void ar_fault_point(const char *name);
#else
#define ar_fault_point(name) ((void) 0)
#endif

#endif							/* AR_FAULT_H */

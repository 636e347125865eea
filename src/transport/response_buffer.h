/*
 * response_buffer.h
 *		Collects one response, bounded, and remembers what its shape proves.
 *
 * Fed with the header lines and body pieces as they arrive.  Knows no libcurl:
 * a false return means "stop this transfer", and the flags say why.  Memory is
 * malloc'ed and stays within the two caps plus a constant.
 */
#ifndef AR_RESPONSE_BUFFER_H
#define AR_RESPONSE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

#include "core/buffer.h"
#include "transport/transport.h"

/* More allow-listed headers than this in one response are not kept. */
#define AR_MAX_KEPT_HEADERS 24

typedef struct ArResponse
{
	/* what was asked */
	size_t		max_body_bytes;
	size_t		max_header_bytes;
	bool		head_request;	/* no body follows, whatever the headers say */
	const char *keep_header;	/* one more name to keep, lower case, or NULL */

	/* what was seen */
	int			status;			/* of the final response, 0 until its first line */
	bool		final_header_end;	/* the blank line of the final response */
	bool		framed;			/* truncation of the body would show */
	bool		header_cut;		/* more header bytes than permitted */
	bool		body_cut;		/* more body bytes than permitted */
	bool		out_of_memory;
	size_t		header_bytes;	/* interim responses and trailers included */
	ArBuffer	body;
	ArResponseHeader headers[AR_MAX_KEPT_HEADERS];
	int			header_count;

	/* inside a header block */
	bool		in_final;		/* the block is a final response's */
	bool		kept_last;		/* the line before this one was kept */
} ArResponse;

/*
 * Makes an empty response of any memory; allocates nothing.  keep_header must
 * outlive it.  Never throws, needs no transaction.
 */
extern void ar_response_init(ArResponse *response, size_t max_body_bytes,
							 size_t max_header_bytes, bool head_request,
							 const char *keep_header);

/*
 * Takes one header line, its line end included.  False: stop the transfer, a
 * cap or memory ran out.  Never throws, needs no transaction.
 */
extern bool ar_response_header_line(ArResponse *response, const char *line, size_t length);

/*
 * Takes a piece of the body.  False: stop the transfer; what fitted is kept.
 * Never throws, needs no transaction.
 */
extern bool ar_response_body_piece(ArResponse *response, const char *bytes, size_t length);

/*
 * Overwrites the secret, as core/redact.h has it, in the body and the kept
 * headers.  NULL is no secret.  Never throws, needs no transaction.
 */
extern void ar_response_hide(ArResponse *response, const char *secret);

/*
 * Frees what was collected.  Harmless on an empty one.  Never throws, needs no
 * transaction.
 */
extern void ar_response_destroy(ArResponse *response);

#endif							/* AR_RESPONSE_BUFFER_H */

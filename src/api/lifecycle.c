/*
 * lifecycle.c
 *		The transition table as rows, for people and tests.
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "core/lifecycle.h"
#include "types/enums.h"

PG_FUNCTION_INFO_V1(ar_transition_rules);

static void
put_row(ReturnSetInfo *result, const ArTransition *rule, int subject)
{
	Datum		values[7];
	bool		nulls[7] = {0};
	Oid			state_type = TupleDescAttr(result->setDesc, 1)->atttypid;

	values[0] = CStringGetTextDatum(subject == AR_OF_ACTION ? "action" : "attempt");
	values[1] = ar_enum_datum(state_type, ar_state_name(rule->from));
	values[2] = CStringGetTextDatum(ar_event_name(rule->event));
	values[3] = ar_enum_datum(state_type, ar_state_name(rule->to));
	values[4] = CStringGetTextDatum(rule->evidence);
	values[5] = CStringGetTextDatum(ar_step_actor_name(rule->actor));
	values[6] = CStringGetTextDatum(rule->meaning);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

Datum
ar_transition_rules(PG_FUNCTION_ARGS)
{
	int			count;
	const ArTransition *rules = ar_transitions(&count);

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < count; i++)
	{
		ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

		if (rules[i].subject & AR_OF_ACTION)
			put_row(result, &rules[i], AR_OF_ACTION);
		if (rules[i].subject & AR_OF_ATTEMPT)
			put_row(result, &rules[i], AR_OF_ATTEMPT);
	}
	return (Datum) 0;
}

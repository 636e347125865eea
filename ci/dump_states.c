/*
 * dump_states.c
 *		Prints the lifecycle table as Mermaid diagrams and as a Markdown table.
 *
 * Linked with src/core only.  ci/check-diagram keeps its output in doc/states.md.
 */
#include <stdio.h>

#include "core/lifecycle.h"

static bool
has_row(int subject, ArState from, ArState to)
{
	int			count;
	const ArTransition *rows = ar_transitions(&count);

	for (int i = 0; i < count; i++)
	{
		if ((rows[i].subject & subject) != 0 && rows[i].from == from && rows[i].to == to)
			return true;
	}
	return false;
}

/* One arrow from state to state, labelled with every event that takes it. */
static void
print_arrow(int subject, ArState from, ArState to)
{
	int			count;
	const ArTransition *rows = ar_transitions(&count);
	const char *separator = ": ";

	printf("    %s --> %s", ar_state_name(from), ar_state_name(to));
	for (int i = 0; i < count; i++)
	{
		if ((rows[i].subject & subject) == 0 || rows[i].from != from || rows[i].to != to)
			continue;
		printf("%s%s", separator, ar_event_name(rows[i].event));
		separator = ", ";
	}
	printf("\n");
}

static void
print_diagram(const char *title, int subject, ArState first)
{
	printf("## %s\n\n```mermaid\nstateDiagram-v2\n", title);
	printf("    [*] --> %s\n", ar_state_name(first));
	for (int from = 0; from < AR_STATE_COUNT; from++)
	{
		for (int to = 0; to < AR_STATE_COUNT; to++)
		{
			if (has_row(subject, (ArState) from, (ArState) to))
				print_arrow(subject, (ArState) from, (ArState) to);
		}
	}
	printf("```\n\n");
}

static const char *
subject_name(int subject)
{
	if (subject == AR_OF_ACTION)
		return "action";
	if (subject == AR_OF_ATTEMPT)
		return "attempt";
	return "both";
}

static void
print_table(void)
{
	int			count;
	const ArTransition *rows = ar_transitions(&count);

	printf("## Every step\n\n");
	printf("| of | from | event | to | evidence | by | meaning |\n");
	printf("|---|---|---|---|---|---|---|\n");
	for (int i = 0; i < count; i++)
	{
		printf("| %s | %s | %s | %s | %s | %s | %s |\n",
			   subject_name(rows[i].subject), ar_state_name(rows[i].from),
			   ar_event_name(rows[i].event), ar_state_name(rows[i].to),
			   rows[i].evidence != NULL ? rows[i].evidence : "",
			   ar_step_actor_name(rows[i].actor), rows[i].meaning);
	}
}

int
main(void)
{
	print_diagram("Of an action", AR_OF_ACTION, AR_PLANNED);
	print_diagram("Of an attempt", AR_OF_ATTEMPT, AR_SUBMITTED);
	print_table();
	return 0;
}

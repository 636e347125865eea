/*
 * timeline.c
 *		How a timeline of the server began.
 *
 * A timeline's history file has a line for each branch before it, the last one
 * for its own: parent, position, reason.
 */
#include "store/timeline.h"

#include "access/xlog_internal.h"
#include "storage/fd.h"

#define LINE_MAXIMUM 1024

char *
ar_timeline_reason(TimeLineID timeline, TimeLineID parent)
{
	char		path[MAXPGPATH];
	char		line[LINE_MAXIMUM];
	char		reason[LINE_MAXIMUM] = "";
	TimeLineID	last_parent = 0;
	uint32		high;
	uint32		low;
	FILE	   *file;

	TLHistoryFilePath(path, timeline);
	file = AllocateFile(path, "r");
	if (file == NULL)
		return NULL;
	while (fgets(line, sizeof(line), file) != NULL)
		(void) sscanf(line, "%u\t%X/%X\t%1023[^\n]", &last_parent, &high, &low, reason);
	FreeFile(file);
	return last_parent == parent && reason[0] != '\0' ? pstrdup(reason) : NULL;
}

bool
ar_timeline_is_promotion(const char *reason)
{
	return strcmp(reason, "no recovery target specified") == 0;
}

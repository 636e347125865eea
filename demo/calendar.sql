-- How the calendar server is described to action_reconcile.
-- The variables proxy_port, window and late_arrival are set by demo/run.

-- Where it is, and how long its read side may lag behind a write.  The window
-- is "measured" here: the demo's fault proxy hides a new event for less.
INSERT INTO reconcile.provider
	(provider, base_url, consistency_window, window_source, late_arrival_max,
	 allow_http, allow_private_addresses)
VALUES
	('calendar', 'http://127.0.0.1:' || :'proxy_port', :'window'::interval, 'measured', :'late_arrival'::interval,
	 true, true);

-- How a booking is written: CalDAV, RFC 4791.  The event's address carries our
-- client reference, and the server is told not to overwrite what is there.
INSERT INTO reconcile.operation
	(operation, provider, method, path, headers, body_template)
VALUES
	('book', 'calendar', 'PUT', '/demo/ours/{client_reference}.ics',
	 '{"Content-Type": "text/calendar; charset=utf-8", "If-None-Match": "*"}',
	 concat_ws(E'\r\n',
		'BEGIN:VCALENDAR',
		'VERSION:2.0',
		'PRODID:-//action_reconcile//demo//EN',
		'BEGIN:VEVENT',
		'UID:{client_reference}',
		'DTSTAMP:20300101T000000Z',
		'DTSTART:{start}',
		'DTEND:{end}',
		'SUMMARY:{summary}',
		'END:VEVENT',
		'END:VCALENDAR',
		''));

-- How to find out whether a booking exists, when no answer came back.
INSERT INTO reconcile.lookup_rule
	(operation, kind, path, headers, found_statuses, absent_statuses, body_match)
VALUES
	('book', 'get_by_reference', '/demo/ours/{client_reference}.ics', '{"Accept": "text/calendar"}',
	 '{200}', '{404}', 'UID:{client_reference}');

-- One picture: how long effects took to show, and the window.

CREATE FUNCTION reconcile.xml_text(value text) RETURNS text
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT replace(replace(replace(replace(replace(regexp_replace($1, '[\x01-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]', '?', 'g'),
		'&', '&amp;'), '<', '&lt;'), '>', '&gt;'), '"', '&quot;'), '''', '&#39;') $$;
COMMENT ON FUNCTION reconcile.xml_text(text) IS 'A text as the content of an XML element or attribute; what XML cannot hold becomes a question mark.';

CREATE FUNCTION reconcile.duration_ticks(low_s numeric, high_s numeric, logarithmic boolean) RETURNS numeric[]
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE WHEN $3 THEN (
		SELECT array_agg(t ORDER BY t) FROM unnest('{0.0001,0.001,0.01,0.1,1,10,60,600,3600,36000,86400,864000,8640000}'::numeric[]) WITH ORDINALITY AS x (t, n)
		 WHERE t >= (SELECT coalesce(max(b), 0.0001) FROM unnest('{0.0001,0.001,0.01,0.1,1,10,60,600,3600,36000,86400,864000}'::numeric[]) b WHERE b <= $1)
		   AND t <= (SELECT min(b) FROM unnest('{0.001,0.01,0.1,1,10,60,600,3600,36000,86400,864000,8640000}'::numeric[]) b WHERE b >= least($2, 8640000)))
	ELSE (
		SELECT array_agg(step * i ORDER BY i)
		  FROM (SELECT min(t) AS step FROM unnest('{0.0001,0.0002,0.0005,0.001,0.002,0.005,0.01,0.02,0.05,0.1,0.2,0.5,1,2,5,10,20,30,60,120,300,600,1200,1800,3600,7200,14400,21600,43200,86400,172800,432000,864000,1728000}'::numeric[]) t
			WHERE $2 / t <= 6) s, generate_series(0, ceil($2 / step)::integer) i) END $$;
COMMENT ON FUNCTION reconcile.duration_ticks(numeric, numeric, boolean) IS
	'Where an axis of durations between these two (seconds) has its ticks: the first and the last enclose them.';

CREATE FUNCTION reconcile.plot_y(seconds numeric, ticks numeric[], logarithmic boolean) RETURNS numeric
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT round(330 - 270 * CASE WHEN $3
		THEN (ln(greatest($1, $2[1])) - ln($2[1])) / (ln($2[cardinality($2)]) - ln($2[1]))
		ELSE $1 / $2[cardinality($2)] END, 1) $$;
COMMENT ON FUNCTION reconcile.plot_y(numeric, numeric[], boolean) IS
	'Where a lag stands in window_plot(): 330 at the first tick, 60 at the last.';

CREATE FUNCTION reconcile.plot_time_axis(low timestamptz, high timestamptz) RETURNS text
	LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
	WITH span AS (SELECT extract(epoch FROM $1) AS low, extract(epoch FROM $2) AS high),
	chosen AS (
		SELECT low, high, coalesce(min(t), 315576000) AS step
		  FROM span LEFT JOIN unnest('{1,2,5,10,15,30,60,120,300,600,900,1800,3600,7200,10800,21600,43200,86400,172800,345600,604800,1209600,2592000,7776000,15552000,31557600,63115200}'::numeric[]) t
			ON (high - low) / t <= 6 GROUP BY low, high)
	SELECT coalesce(string_agg(format('<path class="grid" d="M%1$s 330v6"/><text class="tick" x="%1$s" y="350" text-anchor="middle">%2$s</text>',
			round(90 + 640 * (at - low) / (high - low), 1),
			to_char(to_timestamp(at::float8), CASE WHEN step < 60 THEN 'HH24:MI:SS' WHEN step < 86400 THEN 'HH24:MI' ELSE 'YYYY-MM-DD' END)), E'\n' ORDER BY at) || E'\n', '')
		|| format('<text class="name" x="410" y="372" text-anchor="middle">when it was seen, UTC%s</text>', CASE WHEN min(step) < 86400 THEN
			', ' || to_char($1, 'YYYY-MM-DD') || CASE WHEN $1::date <> $2::date THEN ' to ' || to_char($2, 'YYYY-MM-DD') ELSE '' END ELSE '' END)
	  FROM chosen, generate_series(ceil(low / step) * step, high, step) AS at $$;
COMMENT ON FUNCTION reconcile.plot_time_axis(timestamptz, timestamptz) IS 'The time axis of window_plot().';

CREATE FUNCTION reconcile.window_plot(operation text) RETURNS text
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	kept constant integer := 2000;
	low timestamptz;
	high timestamptz;
	smallest numeric;
	largest numeric;
	logarithmic boolean;
	ticks numeric[];
	named text := reconcile.xml_text($1);
	windows text;
	verdicts text;
	axis text;
	marks text;
	counts text;
BEGIN
	IF NOT EXISTS (SELECT FROM reconcile.operation o WHERE o.operation = $1) THEN
		RAISE EXCEPTION 'operation "%" does not exist', $1
			USING ERRCODE = 'undefined_object', HINT = 'The names are in reconcile.operation.';
	END IF;

	-- What is to be shown, and so how far the axes go.
	SELECT min(m.at), max(m.at), min(m.s), max(m.s),
			format('%s probes, %s lookups, %s violations', count(*) FILTER (WHERE m.kind = 'probe'),
				count(*) FILTER (WHERE m.kind = 'lookup'), count(*) FILTER (WHERE m.kind = 'violation'))
	  INTO low, high, smallest, largest, counts
	  FROM (SELECT x.source AS kind, x.sampled_at AS at, x.lag_us / 1000000.0 AS s
			FROM (SELECT * FROM reconcile.window_sample w WHERE w.operation = $1 ORDER BY w.sampled_at DESC LIMIT kept) x
		UNION ALL
		SELECT 'violation', v.opened_at, extract(epoch FROM v.lag) FROM reconcile.window_violation v WHERE v.operation = $1) m;
	IF low IS NULL OR high - low < interval '1 second' THEN
		low := coalesce(low, statement_timestamp()) - interval '30 seconds';
		high := coalesce(high, statement_timestamp()) + interval '30 seconds';
	ELSE
		SELECT low - (high - low) / 40, high + (high - low) / 40 INTO low, high;
	END IF;
	SELECT least(smallest, min(extract(epoch FROM w.consistency_window)) FILTER (WHERE w.consistency_window > '0')),
			greatest(largest, max(extract(epoch FROM w.consistency_window))), string_agg(format('Lookup %s: %s.', w.position, w.verdict), ' ' ORDER BY w.position)
	  INTO smallest, largest, verdicts FROM reconcile.window_report w WHERE w.operation = $1;
	smallest := greatest(smallest, 0.0001);
	largest := greatest(largest, smallest, 0.001);
	logarithmic := coalesce(largest >= 50 * smallest, false);
	ticks := reconcile.duration_ticks(coalesce(smallest, 1), CASE WHEN logarithmic THEN largest ELSE largest * 1.05 END, logarithmic);

	SELECT string_agg(format('<path class="grid" d="M90 %1$sh640"/><text class="tick" x="82" y="%2$s" text-anchor="end">%3$s</text>',
			reconcile.plot_y(t, ticks, logarithmic), reconcile.plot_y(t, ticks, logarithmic) + 4, reconcile.duration_text(t * interval '1 second')), E'\n' ORDER BY t)
	  INTO axis FROM unnest(ticks) t;

	-- The label of the smallest window stands below it, where no other can be.
	SELECT string_agg(format('<path class="window" d="M90 %sh640"/><text class="label" x="%s" y="%s" text-anchor="%s">%s</text>',
			w.y, CASE WHEN w.n % 2 = 1 THEN 726 ELSE 94 END, CASE WHEN w.n = 1 AND w.others THEN w.y + 15 ELSE w.y - 5 END,
			CASE WHEN w.n % 2 = 1 THEN 'end' ELSE 'start' END,
			reconcile.xml_text(format('window of lookup %s: %s (%s)', w.positions, reconcile.duration_text(w.consistency_window), w.sources))), E'\n' ORDER BY w.consistency_window)
	  INTO windows
	  FROM (SELECT r.consistency_window, string_agg(r.position::text, ', ' ORDER BY r.position) AS positions,
				string_agg(DISTINCT r.window_source::text, ', ') AS sources, row_number() OVER (ORDER BY r.consistency_window) AS n,
				count(*) OVER () > 1 AS others,
				reconcile.plot_y(extract(epoch FROM r.consistency_window), ticks, logarithmic) AS y
			FROM reconcile.window_report r WHERE r.operation = $1 GROUP BY r.consistency_window) w;

	SELECT string_agg(concat('<g>', '<title>' || reconcile.xml_text(concat(m.kind, ', lookup ', m.position, ': ', reconcile.duration_text(m.s * interval '1 second'),
				', ' || to_char(m.at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') || ' UTC')) || '</title>',
			'<path class="between" d="M' || m.x || ' ' || m.y || 'V' || m.low_y || '"/>',
			CASE m.kind WHEN 'probe' THEN format('<circle class="probe" cx="%s" cy="%s" r="4"/>', m.x, m.y)
				WHEN 'lookup' THEN format('<path class="lookup" d="M%s %sl5 9h-10z"/>', m.x, m.y - 5)
				ELSE format('<path class="violation" d="M%s %sl12 12m0 -12l-12 12"/>', m.x - 6, m.y - 6) END, '</g>'), E'\n' ORDER BY m.kind DESC, m.at)
	  INTO marks
	  FROM (SELECT k.*, round(90 + 640 * extract(epoch FROM k.at - low) / extract(epoch FROM high - low), 1) AS x,
				reconcile.plot_y(k.s, ticks, logarithmic) AS y, reconcile.plot_y(k.low_s, ticks, logarithmic) AS low_y
			FROM (SELECT x.source AS kind, x.position, x.sampled_at AS at, x.lag_us / 1000000.0 AS s, x.lag_low_us / 1000000.0 AS low_s
					FROM (SELECT * FROM reconcile.window_sample w WHERE w.operation = $1 ORDER BY w.sampled_at DESC LIMIT kept) x
				UNION ALL
				SELECT 'violation', v.position, v.opened_at, extract(epoch FROM v.lag), NULL
					FROM reconcile.window_violation v WHERE v.operation = $1) k) m;

	RETURN concat_ws(E'\n',
		format('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 430" width="760" height="430" role="img" aria-labelledby="%1$s-title %1$s-desc">', named),
		format('<title id="%1$s-title">Visibility lag of %1$s</title>', named),
		format('<desc id="%s-desc">%s</desc>', named, reconcile.xml_text(concat_ws(' ', counts || '.', verdicts))),
		'<style>text{font:12px sans-serif;fill:#222}.head{font-size:15px;font-weight:bold}.grid{stroke:#ddd}.axis{stroke:#222;fill:none}'
			'.window{stroke:#000;stroke-width:2;stroke-dasharray:8 4}.between{stroke:#888}.probe{fill:#0072b2}'
			'.lookup{fill:#fff;stroke:#a05a00;stroke-width:1.5}.violation{stroke:#c00;stroke-width:3;fill:none}</style>',
		'<rect width="760" height="430" fill="#fff"/>',
		format('<text class="head" x="90" y="28">Visibility lag of %s</text>', named),
		format('<text x="90" y="46">from the end of the attempt to the first lookup that showed its effect%s</text>',
			CASE WHEN logarithmic THEN ', logarithmic' END),
		axis, reconcile.plot_time_axis(low, high), '<path class="axis" d="M90 60V330H730"/>',
		'<text class="name" transform="translate(22 195) rotate(-90)" text-anchor="middle">lag</text>',
		windows, coalesce(marks, '<text x="410" y="195" text-anchor="middle">nothing measured yet</text>'),
		'<g class="legend"><circle class="probe" cx="96" cy="404" r="4"/><text x="106" y="408">probe</text>'
			'<path class="between" d="M170 411V397"/><text x="178" y="408">asked before, not seen</text>'
			'<path class="lookup" d="M352 399l5 9h-10z"/><text x="362" y="408">ordinary lookup</text>'
			'<path class="violation" d="M472 398l12 12m0 -12l-12 12"/><text x="490" y="408">seen too late</text>'
			'<path class="window" d="M590 404h40"/><text x="638" y="408">window</text></g>',
		'</svg>');
END $$;
COMMENT ON FUNCTION reconcile.window_plot(text) IS
	'One SVG document: when the effects of an operation were seen and how long they took, the windows of its lookups, and what came too late. The newest 2000 samples. Error 42704: no such operation.';

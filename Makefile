# action_reconcile: build, install, demo and test.
#
#   make               build against the server that PG_CONFIG names
#   make install       install it there
#   make demo          install what is missing, build, and show the calendar story
#   make test          install what is missing, build, and run every test
#   make test-long     the same for PostgreSQL 17 in a root of Debian 13, and pg_upgrade to it (root; test/long/run)
#   make FAULT_POINTS=1   a test build with named fault points (after make clean)

EXTENSION = action_reconcile
EXTVERSION := $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" $(EXTENSION).control)

# "make demo" and "make test" must work before there is a pg_config.
ifneq ($(filter demo test test-long,$(MAKECMDGOALS)),)

.PHONY: demo test test-long
demo test test-long:
	@ci/setup
	@$(MAKE) --silent --no-print-directory PG_CONFIG=$$(ci/setup --print-pg-config) run-$@

else

PG_CONFIG ?= pg_config
MODULE_big = action_reconcile
LAYERS = core types profile store transport engine worker api
OBJS = src/action_reconcile.o src/settings.o $(patsubst %.c,%.o,$(sort $(wildcard $(addsuffix /*.c,$(addprefix src/,$(LAYERS))))))

PG_CPPFLAGS = -Isrc -DAR_SQL_VERSION='"$(EXTVERSION)"' $(shell curl-config --cflags)
PG_CFLAGS = -std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers -Wno-cast-function-type -Wno-declaration-after-statement
SHLIB_LINK = -lcurl -Wl,--version-script=$(srcdir)/src/exports.map
ifdef FAULT_POINTS
PG_CPPFLAGS += -DAR_FAULT_POINTS
endif

INSTALL_SQL = $(EXTENSION)--$(EXTVERSION).sql
UPGRADE_SQL = $(EXTENSION)--0.1--$(EXTVERSION).sql
DATA_built = $(INSTALL_SQL) $(UPGRADE_SQL)
EXTRA_CLEAN = $(DATA_built)

REGRESS = $(sort $(patsubst sql/%.sql,%,$(wildcard sql/*.sql)))
REGRESS_OPTS = --load-extension=action_reconcile

override with_llvm := no
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

$(OBJS): $(wildcard src/*.h src/*/*.h) $(EXTENSION).control

# The catalogue of profiles stands behind the tables that it fills. Dollar quotes take JSON as it is; what the server would
# replace in a script, or what would end the quotes, is refused.
INSTALL_PARTS = $(sort $(wildcard sql/install/*.sql))
PROFILES = $(filter-out profiles/schema.json,$(sort $(wildcard profiles/*.json)))
$(INSTALL_SQL): $(INSTALL_PARTS) $(PROFILES)
	@if grep -lE '\$$profile\$$|@ext|MODULE_PATHNAME' $(PROFILES) /dev/null; then echo "a profile must not hold that" >&2; exit 1; fi
	@{ cat $(INSTALL_PARTS) && printf '\n-- The catalogue, from profiles/.\n' && \
	for profile in $(PROFILES); do \
		printf 'INSERT INTO reconcile.profile_catalog (document) VALUES ($$profile$$\n' && cat $$profile && printf '$$profile$$);\n' || exit 1; \
	done; } > $@.tmp && mv $@.tmp $@

# What is said there for new databases is said again for old ones, in a form that may be repeated.
$(UPGRADE_SQL): $(wildcard sql/upgrade/*) $(INSTALL_SQL)
	@perl sql/upgrade/generate.pl $(EXTVERSION) sql/upgrade/0.1--0.2.sql $(INSTALL_SQL) > $@.tmp && mv $@.tmp $@

.PHONY: run-demo run-test run-test-long
run-demo: all
	demo/run
run-test:
	test/run
run-test-long:
	test/long/run

endif

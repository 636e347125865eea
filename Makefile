# action_reconcile: build, install, demo and test.
#
#   make               build against the server that PG_CONFIG names
#   make install       install it there
#   make demo          install what is missing, build, and show the calendar story
#   make test          install what is missing, build, and run every test
#   make FAULT_POINTS=1   a test build with named fault points (after make clean)

EXTENSION = action_reconcile
EXTVERSION := $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" $(EXTENSION).control)

# "make demo" and "make test" must work before there is a pg_config.
ifneq ($(filter demo test,$(MAKECMDGOALS)),)

.PHONY: demo test
demo test:
	@ci/setup
	@$(MAKE) --silent --no-print-directory PG_CONFIG=$$(ci/setup --print-pg-config) run-$@

else

PG_CONFIG ?= pg_config
MODULE_big = action_reconcile
LAYERS = core types profile store transport engine worker api
OBJS = src/action_reconcile.o src/settings.o $(patsubst %.c,%.o,$(sort $(wildcard $(addsuffix /*.c,$(addprefix src/,$(LAYERS))))))

PG_CPPFLAGS = -Isrc $(shell curl-config --cflags)
PG_CFLAGS = -std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers -Wno-cast-function-type -Wno-declaration-after-statement
SHLIB_LINK = -lcurl -Wl,--version-script=$(srcdir)/src/exports.map
ifdef FAULT_POINTS
PG_CPPFLAGS += -DAR_FAULT_POINTS
endif

INSTALL_SQL = $(EXTENSION)--$(EXTVERSION).sql
DATA_built = $(INSTALL_SQL)
EXTRA_CLEAN = $(INSTALL_SQL)

REGRESS = $(sort $(patsubst sql/%.sql,%,$(wildcard sql/*.sql)))
REGRESS_OPTS = --load-extension=action_reconcile

override with_llvm := no
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

$(OBJS): $(wildcard src/*.h src/*/*.h)

$(INSTALL_SQL): $(sort $(wildcard sql/install/*.sql))
	cat $^ > $@

.PHONY: run-demo run-test
run-demo: all
	demo/run
run-test:
	test/run

endif

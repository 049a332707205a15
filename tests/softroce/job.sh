#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# job start NAME COMMAND...: runs it in the background. job wait NAME SECONDS: waits; ends with its status, 124 if it
# still runs. job out|err NAME: what it has printed. job kill NAME SIGNAL.
set -u
what=$1 name=$2
shift 2
cd /tmp
case $what in
start)
    rm -f "$name".rc "$name".pid
    (setsid "$@" >"$name".out 2>"$name".err & pid=$!; echo $pid >"$name".pid; wait $pid; echo $? >"$name".rc) >/dev/null 2>&1 3>&- &
    while [ ! -s "$name".pid ]; do usleep 2000; done ;;
wait)
    tries=$(($1 * 50))
    while [ ! -s "$name".rc ]; do
        [ $tries -gt 0 ] || exit 124
        tries=$((tries - 1))
        usleep 20000
    done
    exit "$(cat "$name".rc)" ;;
out | err) cat "$name.$what" ;;
kill) kill -"$1" "$(cat "$name".pid)" ;;
esac

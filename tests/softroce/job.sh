#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# job start NAME COMMAND...: runs it in the background. job wait NAME SECONDS: waits; ends with its status, 124 if it
# still runs. job out|err NAME: what it has printed. job line NAME N SECONDS: line N of it, as soon as it is there.
# job kill NAME SIGNAL.
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
line)
    tries=$(($2 * 200))
    while [ "$(wc -l <"$name".out)" -lt "$1" ]; do
        if [ $tries -le 0 ] || [ -s "$name".rc ]; then
            cat "$name".err
            exit 1
        fi
        tries=$((tries - 1))
        usleep 5000
    done
    sed -n "$1p" "$name".out ;;
out | err) cat "$name.$what" ;;
kill) kill -"$1" "$(cat "$name".pid)" ;;
esac

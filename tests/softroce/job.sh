#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# job start NAME COMMAND...: runs it in the background. job wait NAME SECONDS: waits; ends with its status, 124 if it
# still runs. job out|err NAME: what it has printed. job line NAME N SECONDS: line N of it, as soon as it is there.
# job kill NAME SIGNAL.
set -u
uptime_s() { read -r up _ </proc/uptime && echo "${up%.*}"; }
what=$1 name=$2
shift 2
cd /tmp
case $what in
start)
    rm -f "$name".rc "$name".pid
    (setsid "$@" >"$name".out 2>"$name".err & pid=$!; echo $pid >"$name".pid; wait $pid; echo $? >"$name".rc) >/dev/null 2>&1 3>&- &
    while [ ! -s "$name".pid ]; do usleep 2000; done ;;
wait)
    until_s=$(($(uptime_s) + $1))
    while [ ! -s "$name".rc ]; do
        [ "$(uptime_s)" -lt $until_s ] || exit 124
        usleep 10000
    done
    exit "$(cat "$name".rc)" ;;
line)
    until_s=$(($(uptime_s) + $2))
    while [ "$(wc -l <"$name".out)" -lt "$1" ]; do
        if [ -s "$name".rc ] || [ "$(uptime_s)" -ge $until_s ]; then
            cat "$name".err
            exit 1
        fi
        usleep 5000
    done
    sed -n "$1p" "$name".out ;;
out | err) cat "$name.$what" ;;
kill) kill -"$1" "$(cat "$name".pid)" ;;
esac

#!/bin/sh
# Spark runs on Java 17 or newer, of JAVA_HOME or of the path. Debian's headless one is enough.
is_new() {
    said=$("${JAVA_HOME:+$JAVA_HOME/bin/}java" -version 2>&1) || return 1
    major=${said#*version \"}
    major=${major%%[!0-9]*}
    [ "${major:-0}" -ge 17 ]
}

is_new \
    || { test "$(id -u)" = 0 && apt-get update -qq && apt-get -o DPkg::Lock::Timeout=300 install -qq --yes default-jre-headless > /dev/null && is_new; } \
    || { echo "The tests on Spark need Java 17 or newer: apt-get install default-jre-headless"; exit 1; }

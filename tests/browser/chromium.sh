#!/bin/sh
# Find Chromium; install it where it is missing and that is allowed; otherwise say in one line what to install.
for name in chromium-headless-shell chromium chromium-browser google-chrome-stable google-chrome; do
    command -v "$name" >/dev/null && exit 0
done
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    mkdir -p build
    export DEBIAN_FRONTEND=noninteractive
    {
        apt-get update &&
            for package in chromium-headless-shell chromium; do # the first is lighter, and not in every Debian
                apt-get -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends "$package" fonts-liberation && exit 0
            done
    } >build/chromium.log 2>&1
fi
echo "The pages are tested in Chromium, which is missing: apt-get install chromium" >&2
exit 1

#!/bin/sh
# Find Chromium; install it where it is missing and that is allowed; otherwise say in one line what to install.
for name in chromium chromium-browser google-chrome-stable google-chrome; do
    command -v "$name" >/dev/null && exit 0
done
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    mkdir -p build
    {
        apt-get update &&
            DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends chromium fonts-liberation
    } >build/chromium.log 2>&1 && exit 0
fi
echo "The pages are tested in Chromium, which is missing: apt-get install chromium" >&2
exit 1

"""A headless Chromium for tests of pages."""

import os
import shutil
from contextlib import contextmanager

import pytest


@contextmanager
def chromium(profile):
    """Start it; without one these tests are skipped, unless KFHE_BROWSER says it must be there."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not (program and driver):
        if os.environ.get("KFHE_BROWSER"):
            pytest.fail("chromium and chromedriver must be installed here")
        pytest.skip("chromium and chromedriver are not installed")
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = program
    for switch in (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        f"--user-data-dir={profile}",
    ):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = Chrome(options=options, service=Service(driver))
    try:
        yield chrome
    finally:
        chrome.quit()


def opened(browser, page, *, width=1280, scheme="light", media="screen"):
    """Open a file; return what asks the page by a script."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(page.as_uri())
    return browser.execute_script

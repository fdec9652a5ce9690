"""Chromium without a window, at the pages of a local Airflow: what a person reads there, presses, and sees.

It reaches this machine's loopback and nothing else. Every wait is for words or elements on the page.
"""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium.common.exceptions import StaleElementReferenceException, TimeoutException
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

WIDTH = 1400
_LIMIT_S = 240.0
_STANDS_STILL = """
return document.getAnimations().every(one => one.playState !== "running" || one.effect.getTiming().iterations > 1)
    && document.querySelector('[data-testid="skeleton"]') === null;
"""


@contextmanager
def chromium(profile: Path) -> Iterator[Browser]:
    """One browser with a profile of its own in an empty folder; ended with its driver."""
    options = ChromeOptions()
    options.binary_location = _program("chromium")
    for argument in (
        *("--headless=new", f"--window-size={WIDTH},1700", f"--user-data-dir={profile}", "--lang=en-US"),
        *("--hide-scrollbars", "--force-color-profile=srgb", "--disable-dev-shm-usage", "--disable-extensions"),
        *("--no-first-run", "--disable-background-networking", "--disable-component-update", "--no-proxy-server"),
        "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    ):
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium's own does not work for root
    service = Service(_program("chromedriver"), env={**os.environ, "TZ": "UTC"})
    driver = Chrome(options, service)
    try:
        yield Browser(driver)
    finally:
        driver.quit()


class Browser:
    def __init__(self, driver: Chrome) -> None:
        self._driver = driver

    def open(self, address: str) -> None:
        self._driver.get(address)

    @property
    def text(self) -> str:
        """What can be read on the page."""
        return self._driver.find_element(By.TAG_NAME, "body").text

    def wait(self, holds: Callable[[], object], for_what: str) -> None:
        try:
            WebDriverWait(self._driver, _LIMIT_S, ignored_exceptions=[StaleElementReferenceException]).until(
                lambda _: holds()
            )
        except TimeoutException:
            raise AssertionError(f"{for_what}: not on {self._driver.current_url}, which says:\n{self.text}") from None

    def wait_for(self, *words: str) -> None:
        """Until all of them can be read."""
        self.wait(lambda: all(word in self.text for word in words), f"{words}")

    def find(self, selector: str) -> WebElement:
        """The first element of a CSS selector, once it is there."""
        self.wait(lambda: self._driver.find_elements(By.CSS_SELECTOR, selector), selector)
        return self._driver.find_element(By.CSS_SELECTOR, selector)

    def press(self, words: str) -> None:
        """The button, link or tab that says exactly this."""
        path = f"//*[self::button or self::a][normalize-space()='{words}' or @aria-label='{words}']"
        self.wait(lambda: self._driver.find_elements(By.XPATH, path), f"button {words!r}")
        self._driver.find_element(By.XPATH, path).click()

    def write(self, field: str, words: str) -> None:
        """Into the field with this id."""
        self.find(f"#{field}").send_keys(words)

    def keep(self, path: Path, height: int) -> None:
        """Writes what is seen in a window of this height, as PNG, once nothing moves."""
        size = {"width": WIDTH, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.wait(lambda: self._driver.execute_script(_STANDS_STILL), "a page that stands still")
        taken = self._driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
        path.write_bytes(base64.b64decode(taken["data"]))


def _program(name: str) -> str:
    found = shutil.which(name)
    assert found, f"{name} is not on the PATH: sudo apt-get install chromium chromium-driver"
    return found

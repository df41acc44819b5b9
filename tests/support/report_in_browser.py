"""Opens reports in Chromium and compares what a reader sees with the logs: report_in_browser.py TWO.html BIG.html"""
import json
import os
import pathlib
import re
import sys

from browser import Page

DRAWN = 'performance.getEntriesByName("ranks").length > 0'
PAINT_MILLISECONDS = 1000


def records(folder):
    return {record["step"]: record for record in map(json.loads, (pathlib.Path(folder) / "log.jsonl").read_text().splitlines())}


def shown(value):
    """As the page writes a number: six digits, whole numbers with all of theirs."""
    return value if float(value).is_integer() else float(f"{value:.6g}")


def expect(condition, text):
    if not condition:
        sys.exit(f"FAILED: {text}")


def opened(path, width, dark=False):
    page = Page(pathlib.Path(path).resolve().as_uri(), width, dark=dark)
    page.wait_for(DRAWN)
    page.run("new Promise(done => setTimeout(done, 300))")
    return page


def place_of(page, title):
    """The middle of a figure's drawing in the window, after it was brought there."""
    script = f"""(() => {{
      const figure = [...document.querySelectorAll("figure")].find(one => one.querySelector("h3").textContent === {json.dumps(title)});
      const area = figure.querySelector(".plot");
      area.scrollIntoView({{block: "center"}});
      const box = area.getBoundingClientRect();
      return [box.left, box.top, box.width, box.height];
    }})()"""
    return page.run(script)


def hover(page, title, part, down=0.5):
    left, top, width, height = place_of(page, title)
    page.mouse("mouseMoved", left + 58 + part * (width - 68), top + 8 + down * (height - 30))
    rows = page.run('[...document.querySelectorAll("#tip tr")].map(row => row.innerText)')
    expect(rows and not page.run('document.getElementById("tip").hidden'), f"{title}: no values appear")
    return rows


def step_of(row):
    return int(re.match(r"step (\d+),", row)[1])


def check_hover(page, log, name):
    for part in (0.02, 0.31, 0.5, 0.77, 0.98):
        rows = hover(page, "Loss", part)
        step = step_of(rows[0])
        values = dict(row.rsplit("\t", 1) for row in rows[1:] if "\t" in row)
        expect(float(values[f"{name}training"]) == shown(log[step]["loss"]), f"loss of step {step}: {rows}")
        rows = hover(page, "Phases of the step", part)
        step = step_of(rows[0])
        for row in rows[1:]:
            phase, value = row.rsplit("\t", 1)
            if phase != "other":
                expect(float(value.split()[0]) == shown(log[step]["phase_seconds"][phase]), f"{phase} of step {step}: {row}")
        for down in (0.1, 0.4, 0.9):
            rows = hover(page, "Time of each rank", part, down)
            step, rank = step_of(rows[0]), int(re.search(r"rank (\d+): own time", rows[1])[1])
            value = float(rows[1].rsplit("\t", 1)[1].split()[0])
            expect(value == log[step]["rank_milliseconds"]["own"][rank], f"own time of rank {rank} in step {step}: {rows}")
            expect(f"(of step {log[step]['rank_milliseconds']['measured_step']})" in rows[1], f"measured step: {rows}")


def drag(page, title, first, last):
    left, top, width, height = place_of(page, title)
    x = lambda part: left + 58 + part * (width - 68)
    page.mouse("mousePressed", x(first), top + height / 2)
    for part in (first, (first + last) / 2, last):
        page.mouse("mouseMoved", x(part), top + height / 2)
    page.mouse("mouseReleased", x(last), top + height / 2)
    page.run("new Promise(done => setTimeout(done, 200))")


def check_zoom(page, log):
    """Far enough inside, each step is a point of the curve."""
    for _ in range(2):
        drag(page, "Loss", 0.45, 0.55)
    rows = [step_of(hover(page, "Loss", part)[0]) for part in (0.001, 0.999)]
    points = page.run("""(() => {
      const figure = [...document.querySelectorAll("figure")].find(one => one.querySelector("h3").textContent === "Loss");
      return figure.querySelector("path.curve").getAttribute("d").split(/[ML]/).length - 1; })()""")
    steps = rows[1] - rows[0] + 1
    expect(steps < 300 and steps <= points <= steps + 4, f"zoomed to steps {rows}: {points} points")
    check_hover(page, log, "")
    page.run("""[...document.querySelectorAll("button")].find(one => one.textContent === "Whole range").click()""")
    page.run("new Promise(done => setTimeout(done, 200))")
    expect(step_of(hover(page, "Loss", 0.999)[0]) > 0.99 * max(log), "the whole range does not come back")


def check_keyboard(page, log, name):
    page.run("""[...document.querySelectorAll("figure")].find(one => one.querySelector("h3").textContent === "Loss").querySelector(".plot").focus()""")
    page.key("Escape")
    page.key("Home")
    for _ in range(4):
        page.key("ArrowRight")
    said = page.run('document.getElementById("spoken").textContent')
    step = step_of(said)
    expect(step == 5 and f"{name}training: {shown(log[5]['loss']):.6g}" in said, f"the keyboard reads {said}")
    page.key("+")
    page.run("new Promise(done => setTimeout(done, 200))")
    page.key("End")
    expect(step_of(page.run('document.getElementById("spoken").textContent')) < max(log), "+ does not zoom")
    page.key("0")
    page.run("new Promise(done => setTimeout(done, 200))")
    page.key("End")
    expect(step_of(page.run('document.getElementById("spoken").textContent')) == max(log), "0 does not show the whole")


def check_legend(page):
    curves = """[...document.querySelectorAll("figure")].find(one => one.querySelector("h3").textContent === "Loss").querySelectorAll("path.curve").length"""
    before = page.run(curves)
    page.run('document.querySelectorAll("#runs button")[1].click(); new Promise(done => setTimeout(done, 200))')
    expect(page.run(curves) == before / 2, "a run does not go away")
    page.run('document.querySelectorAll("#runs button")[1].click(); new Promise(done => setTimeout(done, 200))')
    expect(page.run(curves) == before, "a run does not come back")


def check_labels(page):
    unnamed = page.run("""[...document.querySelectorAll("button, select, [tabindex]")].filter(one =>
      !one.getAttribute("aria-label") && !one.textContent.trim() && !one.labels?.length).map(one => one.outerHTML)""")
    expect(not unnamed, f"controls without a name: {unnamed}")


def check_themes(page, dark):
    back = lambda: page.run("getComputedStyle(document.body).backgroundColor")
    light = lambda: sum(map(int, re.findall(r"\d+", back())[:3])) > 380
    expect(light() != dark, f"the page does not follow the system: {back()}")
    switch = """[...document.querySelectorAll("button")].find(one => one.textContent.startsWith("Theme")).click()"""
    seen = []
    for _ in range(3):
        page.run(switch)
        seen.append(light())
    expect(seen == [True, False, not dark], f"light, dark and automatic look {seen}")
    page.call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    expect(light() and page.run('getComputedStyle(document.getElementById("choices")).display') == "none", "on paper it is dark, or has buttons")


def finished(page, path):
    expect(not page.complaints, f"{path}: {page.complaints}")
    expect(not page.requests, f"{path} asks for {page.requests}")
    page.close()


def check_paint(path):
    times = []
    for _ in range(3):
        page = opened(path, 1280)
        found = page.run("""JSON.stringify(Object.fromEntries([...performance.getEntriesByType("paint"), ...performance.getEntriesByType("mark")]
          .map(one => [one.name, Math.round(one.startTime)])))""")
        times.append(json.loads(found))
        finished(page, path)
    best = {name: min(time[name] for time in times) for name in times[0]}
    print(f"{path}, {os.path.getsize(path)} bytes, best of 3 in ms: {best}")
    expect(best["first-contentful-paint"] < PAINT_MILLISECONDS, "the first paint comes late")


def main():
    two, big = sys.argv[1:]
    check_paint(big)
    for width in (1280, 400):
        for dark in (False, True):
            for path, folder, name in ((two, "moved", "moved: "), (big, "big", "")):
                page = opened(path, width, dark)
                page.picture(f"{pathlib.Path(path).stem}-{width}-{'dark' if dark else 'light'}.png", whole=True)
                expect(page.run("document.documentElement.scrollWidth") <= width, f"{path} is wider than {width} pixels")
                check_hover(page, records(folder), name)
                if name:
                    check_legend(page)
                else:
                    check_zoom(page, records(folder))
                    check_keyboard(page, records(folder), name)
                check_labels(page)
                check_themes(page, dark)
                finished(page, path)


if __name__ == "__main__":
    main()

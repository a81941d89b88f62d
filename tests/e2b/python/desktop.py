"""A screen, a mouse and a keyboard, through E2B's Python desktop client, which is synchronous alone. One sandbox serves all."""
import asyncio
import urllib.parse

import e2b_desktop as desktop
from lib import Blocking, create, main, test, until

Sandbox = Blocking(desktop.Sandbox)
sbx = None


def screen(name):
    return test(name, only="sync")


async def box():
    global sbx
    sbx = sbx or await create("desktop", Sandbox, resolution=(1024, 768), dpi=96, display=":0", timeout=600)
    return sbx


async def out(command, **options):
    return (await (await box()).commands.run(command, **options)).stdout


@screen("desktop.create :: the screen and its session")
async def _():
    assert await out("echo $DISPLAY $(id -un)") == ":0 user\n"
    assert await sbx.get_screen_size() == (1024, 768)


@screen("desktop.screenshot :: bytes and a stream")
async def _():
    png = bytes(await (await box()).screenshot())
    assert png.startswith(b"\x89PNG") and int.from_bytes(png[16:20], "big") == 1024
    parts = await asyncio.to_thread(b"".join, await sbx.screenshot("stream"))
    assert parts.startswith(b"\x89PNG")


@screen("desktop mouse, keyboard :: what a window is told")
async def _():
    await box()
    log = "/tmp/events"
    watching = await sbx.commands.run(f"stdbuf -oL xev -name target -geometry 400x300+200+200 -event mouse -event keyboard > {log}",
                                      background=True, timeout=0)

    async def window():
        return (await out('xdotool search --onlyvisible --name "^target$" || true')).strip()
    found = await until(window, "the window")
    await out(f"xdotool windowactivate --sync {found}")

    async def told(*wanted):
        async def look():
            events = [" ".join(e.split()) for e in (await out(f"cat {log}")).split("\n\n")]
            return all(any(w in e for e in events) for w in wanted)
        await until(look, f"{wanted}")
    await sbx.move_mouse(420, 380)
    assert await sbx.get_cursor_position() == (420, 380)
    await sbx.left_click(420, 380)
    await told("button 1,")
    await sbx.right_click(421, 380)
    await sbx.middle_click(422, 380)
    await sbx.double_click(423, 380)
    await sbx.scroll(direction="up", amount=2)
    await sbx.scroll("down")
    await told("button 2,", "button 3,", "button 4,", "button 5,")
    await sbx.mouse_press("left")
    await sbx.mouse_release("left")
    await sbx.drag((420, 381), (480, 421))
    assert await sbx.get_cursor_position() == (480, 421)
    await sbx.press("esc")
    await sbx.press(["ctrl", "a"])
    await told(", Escape)", ", Control_L)")
    await watching.kill()


@screen("desktop.write, launch, open, get_application_windows, get_window_title :: programs")
async def _():
    await (await box()).files.write("/home/user/note.txt", "a note\n")
    await sbx.open("/home/user/note.txt")

    async def editor():
        try:
            return [w for w in await sbx.get_application_windows("mousepad") if w]
        except desktop.CommandExitException:  # xdotool fails where there are none
            return None
    [window, *_] = await until(editor, "the editor", 60)

    async def titled():
        return "note.txt" in await sbx.get_window_title(window)
    await until(titled, "the file in it")
    await out(f"xdotool windowactivate --sync {window}")
    assert await sbx.get_current_window_id() == window
    await sbx.write("typed ", chunk_size=3, delay_in_ms=5)
    await sbx.press(["ctrl", "s"])

    async def saved():
        return "typed" in await sbx.files.read("/home/user/note.txt")
    await until(saved, "what was typed")
    await sbx.launch("debian-xterm", uri=None)
    await until(lambda: out("pgrep -x xterm || true"), "the program", 60)
    await sbx.wait(10)


@screen("desktop.stream :: start, the address, and stop")
async def _():
    stream = (await box()).stream
    await stream.start(require_auth=True)
    url = urllib.parse.urlsplit(stream.get_url(auth_key=stream.get_auth_key()))
    assert url.netloc == sbx.get_host(6080) and url.path == "/vnc.html" and "password=" in url.query
    assert "noVNC" in await out("curl -s http://127.0.0.1:6080/vnc.html")
    await stream.stop()


main()

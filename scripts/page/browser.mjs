// Uses the page as a person does, in a real browser: node browser.mjs URL PICTURES, where
// RILLBOX_AUTH_TOKEN is the server's. It writes two screenshots into the directory
// PICTURES, prints a line for each test, and at the end "N passed, N failed". It exits
// with 77 where no browser can start.
import chromium from "@sparticuz/chromium";
import axe from "axe-core";
import assert from "node:assert/strict";
import { mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import puppeteer from "puppeteer-core";

const [url, pictures] = process.argv.slice(2);
const secret = process.env.RILLBOX_AUTH_TOKEN;

/** How long anything may take that waits for a program, in milliseconds. */
const patience = 60_000;

let browser;
try {
  browser = await puppeteer.launch({
    executablePath: await chromium.executablePath(),
    headless: "shell",
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
  });
} catch (error) {
  console.log(`no browser can start: ${error.message.split("\n")[0]}`);
  process.exit(77);
}

const page = await browser.newPage();
page.setDefaultTimeout(patience);
const problems = [];
page.on("console", (m) => {
  // A refused token is in the console, too.
  if (m.type() === "error" && !m.text().includes("401")) {
    problems.push(`${m.text()} ${m.location().url ?? ""}`);
  }
});
page.on("pageerror", (e) => problems.push(e.message));
const hosts = new Set();
for (const event of ["requestfinished", "requestfailed"]) {
  page.on(event, (r) => {
    // What the page's policy stops never leaves the browser, and has no error of the network.
    const stopped = event === "requestfailed" && !r.failure()?.errorText;
    if (r.url().startsWith("http") && !stopped) {
      hosts.add(new URL(r.url()).host);
    }
  });
}

const moment = () => new Promise((done) => setTimeout(done, 30));

/** Waits until something is so in the page. Puppeteer's own wait is what the page's policy forbids. */
async function until(is, ...args) {
  for (const end = Date.now() + patience; !await page.evaluate(is, ...args);) {
    if (Date.now() > end) {
      throw new Error(
        `Never: ${is} ${args}; the page says: ${
          (await page.$eval("#columns", (e) => e.innerText)).slice(-400)
        }`,
      );
    }
    await moment();
  }
}

/** Waits until the state line matches, and gives it. */
async function state(pattern) {
  await until(
    (source) =>
      new RegExp(source).test(document.getElementById("state").textContent),
    pattern.source,
  );
  return await page.$eval("#state", (e) => e.textContent);
}

/** Writes a program into the editor with the keyboard. */
async function write(code) {
  await page.evaluate(() =>
    document.getElementById("editor").shadowRoot.querySelector(".cm-content")
      .focus()
  );
  await page.keyboard.down("Control");
  await page.keyboard.press("a");
  await page.keyboard.up("Control");
  await page.keyboard.press("Delete");
  await page.keyboard.sendCharacter(code);
}

/** Runs what is in the editor, until it has ended. */
async function run(pattern = /^Ended/) {
  await page.evaluate(() => document.getElementById("state").textContent = "");
  await page.click("#run");
  return await state(pattern);
}

async function program(language, code) {
  await page.select("#language", language);
  await write(code);
}

const output = () => page.$eval("#cells", (e) => e.innerText);

/** Chooses an example by its language and title. */
async function example(language, title) {
  const value = await page.$$eval(
    "#example option",
    (options, language, title) =>
      options.find((o) =>
        o.parentElement.label === language && o.text === title
      )?.value,
    language,
    title,
  );
  assert.ok(value, `there is no example ${title}`);
  await page.select("#example", value);
}

/** What axe finds; the frame of a program's own HTML is not the page's. */
async function accessible() {
  const session = await page.createCDPSession(); // the page's policy is not in its way
  await session.send("Runtime.evaluate", { expression: axe.source });
  await session.detach();
  const { violations } = await page.evaluate(() =>
    globalThis.axe.run({ exclude: ["iframe"] })
  );
  assert.deepEqual(
    violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).join(" ")}`),
    [],
  );
}

const tests = {
  async "a wrong token is refused, and a right one is kept by the tab"() {
    await page.goto(url);
    await page.waitForSelector("#token-form:not([hidden])");
    await page.type("#token", "wrong");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#token-form:not([hidden])");
    assert.match(
      await page.$eval("#token-why", (e) => e.textContent),
      /does not hold/,
    );
    await page.type("#token", secret);
    await page.keyboard.press("Enter");
    await until(() =>
      document.getElementById("status-list").innerText.includes("rillbox")
    );
    assert.equal(await page.evaluate(() => localStorage.length), 0);
    await page.reload();
    await until(() =>
      document.getElementById("status-list").innerText.includes("rillbox")
    );
    assert.ok(await page.$("#token-form[hidden]"));
  },

  async "each language runs"() {
    for (
      const [language, code] of [
        ["javascript", "console.log('js', 6 * 7)"],
        ["typescript", "const n: number = 6 * 7; console.log('ts', n)"],
        ["python", "print('py', 6 * 7)"],
      ]
    ) {
      await program(language, code);
      assert.match(await run(), /^Ended: completed, exit code 0/);
      assert.match(await output(), /(js|ts|py) 42/);
    }
  },

  async "a program that fails says why"() {
    await program("python", "1 / 0");
    assert.match(await run(), /^Ended: failed/);
    assert.match(await output(), /ZeroDivisionError/);
  },

  async "output comes while the program runs, and Stop ends it"() {
    await program(
      "javascript",
      "console.log('begun'); setInterval(() => {}, 1000);",
    );
    await page.click("#run");
    await until(() =>
      document.querySelector(".printed")?.innerText.includes("begun")
    );
    assert.ok(await page.$("#run[disabled]"));
    await page.click("#stop");
    assert.match(await state(/^Ended/), /cancelled/);
    assert.match(await output(), /begun/);
    assert.equal(await page.evaluate(() => document.activeElement.id), "run");
  },

  async "lines are written over, with colours"() {
    await program(
      "javascript",
      "process.stdout.write('10%\\r20%\\n\\x1b[31mred\\x1b[0m\\n'); console.error('bad')",
    );
    await run();
    const text = await output();
    assert.match(text, /20%\nred/);
    assert.doesNotMatch(text, /10%/);
    assert.equal(
      await page.$eval(".printed .fg1", (e) => e.textContent),
      "red",
    );
    assert.equal(
      await page.$eval(".printed .stderr", (e) => e.textContent),
      "bad",
    );
  },

  async "input, arguments, packages and permissions reach the program"() {
    await example("python", "Input and arguments");
    await run();
    assert.match(await output(), /a line\s*\nshort/);
    const computed = "print(__import__('at' + 'tr').__name__)";
    await program("python", computed);
    await run();
    assert.match(await output(), /No module named 'attr'/);
    await program("python", computed);
    await page.type("#packages", "attrs");
    await run();
    assert.match(await output(), /^attr$/m);
    await page.$eval("#packages", (e) => e.value = "");
    await program("javascript", "1");
    await page.type("#permissions", "--allow-net=example.com");
    await run(/not run|granted|Ended/);
    assert.match(await output(), /allow-net/);
    await page.$eval("#permissions", (e) => e.value = "");
  },

  async "pictures and drawings are shown"() {
    await example("python", "A picture");
    await run();
    await until(() =>
      document.querySelector(".cell img")?.naturalWidth === 240
    );
    await example("javascript", "A drawing");
    await run();
    await until(() =>
      document.querySelector(".cell img")?.naturalWidth === 200
    );
  },

  async "a program's HTML is shown where it can do nothing"() {
    await example("python", "A table");
    await run();
    const [frame] = page.frames().filter((f) => f !== page.mainFrame());
    assert.match(await frame.$eval("table", (e) => e.innerText), /343/);
    const styled = () =>
      getComputedStyle(document.querySelector("td")).borderTopStyle === "solid";
    while (!await frame.evaluate(styled)) await moment(); // by frame.css
    await program(
      "javascript",
      `display({[Symbol.for("Jupyter.display")]: () => ({"text/html": "<p>here</p><script>parent.document.title='x';document.querySelector('p').textContent='ran'</script><img src=x onerror='parent.document.title=1'><img src='http://example.com/a.png'><meta http-equiv=refresh content='0;url=http://example.com/'><iframe src='http://example.com/'></iframe>"})})`,
    );
    const before = problems.length;
    await run();
    const [hostile] = page.frames().filter((f) =>
      f.parentFrame() === page.mainFrame()
    );
    assert.equal(await hostile.$eval("p", (e) => e.textContent), "here");
    assert.equal(await page.title(), "Rillbox");
    problems.splice(before); // the browser tells what it did not do
  },

  async "a session keeps variables and files"() {
    await page.click("#keep");
    await program("python", "x = 20");
    await run();
    await program("python", "open('made.txt', 'w').write('héllo'); x + 1");
    await run();
    assert.match(await output(), /21/);
    await page.click("#file-part summary");
    const dir = await mkdtemp(join(tmpdir(), "page-"));
    const bytes = Buffer.alloc(3_000_000).map((_, i) => i * 7);
    await writeFile(join(dir, "up.bin"), bytes);
    await (await page.$("#upload")).uploadFile(join(dir, "up.bin"));
    await state(/^Uploaded up.bin/);
    await page.waitForSelector("[aria-label='Download made.txt']");
    await rename(join(dir, "up.bin"), join(dir, "was.bin"));
    const session = await browser.target().createCDPSession();
    await session.send("Browser.setDownloadBehavior", {
      behavior: "allow",
      downloadPath: dir,
      eventsEnabled: true,
    });
    for (const name of ["made.txt", "up.bin"]) {
      const ended = new Promise((done) =>
        session.on(
          "Browser.downloadProgress",
          (e) => e.state === "completed" && done(),
        )
      );
      await page.waitForSelector(`[aria-label='Download ${name}']`);
      await page.click(`[aria-label='Download ${name}']`);
      await ended;
      const want = name === "made.txt" ? Buffer.from("héllo") : bytes;
      assert.ok(want.equals(await readFile(join(dir, name))), name);
    }
    await session.detach();
    await rm(dir, { recursive: true });
    await page.click("[aria-label='Delete up.bin']");
    await state(/^Deleted/);
    await page.click("#forget");
    await state(/^The session has ended/);
    assert.equal(await page.$("[aria-label='Download made.txt']"), null);
    await page.click("#keep");
  },

  async "a link holds the program, and nothing is run by it"() {
    await program("typescript", "console.log('from a link');");
    await page.click("#share");
    await until(() => document.getElementById("link").value.includes("#p="));
    const link = await page.$eval("#link", (e) => e.value);
    await page.goto("about:blank");
    await page.goto(link);
    await state(/^This program is the link's/);
    assert.equal(await page.$eval("#language", (e) => e.value), "typescript");
    assert.equal(await output(), "");
    await run();
    assert.match(await output(), /from a link/);
    await page.goto("about:blank");
    await page.goto(url + "/#p=nonsense");
    await state(/^The link can't be read/);
  },

  async "the keyboard is enough"() {
    await page.goto("about:blank");
    await page.goto(url);
    const seen = [];
    const tab = async () => {
      await page.keyboard.press("Tab");
      seen.push(
        await page.evaluate(() =>
          document.activeElement.id || document.activeElement.tagName
        ),
      );
      return seen.at(-1);
    };
    while (await tab() !== "language") {
      assert.ok(seen.length < 10, String(seen));
    }
    await page.keyboard.press("j"); // a list's own keys
    while (await tab() !== "editor") assert.ok(seen.length < 20, String(seen));
    await page.keyboard.down("Control");
    await page.keyboard.press("a");
    await page.keyboard.up("Control");
    await page.keyboard.press("Delete");
    await page.keyboard.sendCharacter("console.log('by keys')");
    await page.keyboard.press("Escape");
    assert.notEqual(await tab(), "editor");
    await page.evaluate(() =>
      document.getElementById("state").textContent = ""
    );
    await page.keyboard.down("Control");
    await page.keyboard.press("Enter");
    await page.keyboard.up("Control");
    await state(/^Ended: completed/);
    assert.match(await output(), /by keys/);
  },

  async "axe finds nothing, light and dark, on a desk and on a telephone"() {
    await example("python", "Hello");
    await run();
    await page.$$eval("details", (all) => all.forEach((d) => d.open = true));
    await page.click("#token-open");
    for (const value of ["light", "dark"]) {
      await page.emulateMediaFeatures([{
        name: "prefers-color-scheme",
        value,
      }]);
      for (const width of [1200, 360]) {
        await page.setViewport({ width, height: 800 });
        await accessible();
        const [inner, all] = await page.evaluate(
          () => [innerWidth, document.documentElement.scrollWidth],
        );
        assert.ok(
          all <= inner,
          `the page is ${all} wide on ${width}`,
        );
      }
    }
  },

  async "pictures of the page"() {
    await page.goto("about:blank");
    await page.goto(url);
    await page.setViewport({ width: 1100, height: 640 });
    await example("python", "A picture");
    await run();
    await page.waitForSelector(".cell img");
    for (const value of ["light", "dark"]) {
      await page.emulateMediaFeatures([{
        name: "prefers-color-scheme",
        value,
      }]);
      const picture = await page.screenshot({
        path: join(pictures, `page-${value}.png`),
      });
      assert.ok(picture.length < 150_000, `it has ${picture.length} bytes`);
    }
  },

  "all came from the server, and the browser complained of nothing"() {
    assert.deepEqual([...hosts], [new URL(url).host]);
    assert.deepEqual(problems, []);
  },
};

let good = 0, bad = 0;
for (const [name, test] of Object.entries(tests)) {
  const start = Date.now();
  try {
    await test();
    good++;
    console.log(`ok    ${name} (${Date.now() - start} ms)`);
  } catch (error) {
    bad++;
    console.log(`FAIL  ${name}: ${error.stack}`);
  }
}
await browser.close();
console.log(`${good} passed, ${bad} failed`);
process.exitCode = bad > 0 ? 1 : 0;

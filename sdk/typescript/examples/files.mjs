// Files, one by one and in bulk: a directory goes in, is worked on, and comes out again.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { Client } from "warren-sandbox";
import { downloadDir, uploadDir } from "warren-sandbox/node";

const here = fs.mkdtempSync(path.join(os.tmpdir(), "warren-example-"));
try {
  await new Client().sandboxes.with({ timeout_s: 300 }, async (box) => {
    await box.files.write("notes/today.txt", "buy milk\n");
    await box.files.append("notes/today.txt", "buy bread\n");
    process.stdout.write(await box.files.readText("notes/today.txt"));
    console.log((await box.files.list("notes")).map((e) => `${e.name} ${e.size}`));

    fs.mkdirSync(path.join(here, "source/data"), { recursive: true });
    for (let n = 0; n < 100; n++) fs.writeFileSync(path.join(here, `source/data/${n}.txt`), `number ${n}\n`);
    const sent = await uploadDir(box, path.join(here, "source"), "/root/work");
    console.log("sent", sent.files, "files,", sent.bytes, "bytes");

    const found = await box.files.search("/root/work", "number 7");
    console.log(found.matches.length, "matches");
    if (sent.files !== 100 || found.matches.length !== 11) throw new Error("something is missing");

    await box.run("cat data/*.txt | wc -l > count", { cwd: "/root/work", check: true });
    const got = await downloadDir(box, "/root/work", path.join(here, "back"));
    console.log("got", got.files, "files,", got.bytes, "bytes");
    if (fs.readFileSync(path.join(here, "back/count"), "utf8").trim() !== "100") throw new Error("the count is wrong");
  });
} finally {
  fs.rmSync(here, { recursive: true });
}
console.log("done");

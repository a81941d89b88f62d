// A small agent: it looks at a failing test, edits the code, and tries again until it passes.
// The "model" is a list of edits so that this runs anywhere; put a real one in its place: it gets
// the test's output and answers with the next edit.
import { Client } from "warren-sandbox";

const project = {
  "/root/project/calc.js": "exports.add = (a, b) => a - b;\nexports.mean = (xs) => exports.sum(xs) / xs.length;\n",
  "/root/project/check.js":
    "const assert = require('assert');\nconst { add, mean } = require('./calc');\n" +
    "assert.equal(add(2, 3), 5);\nassert.equal(mean([1, 3]), 2);\nconsole.log('all good');\n",
};

function model(output) {
  if (output.includes("-1 == 5")) return ["a - b", "a + b"];
  if (output.includes("sum is not a function")) return ["exports.sum(xs)", "xs.reduce(exports.add, 0)"];
  throw new Error("the model does not know what to do about: " + output);
}

await new Client().sandboxes.with({ timeout_s: 300 }, async (box) => {
  await box.files.writeMany(project);
  let test;
  for (let turn = 1; turn < 6; turn++) {
    test = await box.run("node check.js", { cwd: "/root/project", timeout_s: 30 });
    console.log(`turn ${turn}: exit code ${test.exit_code}`);
    if (test.ok) break;
    const [old, replacement] = model(test.stderr);
    const done = await box.files.replace("/root/project/calc.js", old, replacement);
    console.log(`  ${old} -> ${replacement}: ${done.count} place(s)`);
    if (done.count !== 1) throw new Error("the edit did not fit");
  }
  if (test.stdout !== "all good\n") throw new Error(test.stderr);
});
console.log("done");

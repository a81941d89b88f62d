// Keep a web server running in a sandbox, talk to it from inside, read its log, end it.
import { Client } from "warren-sandbox";

const program = `require("http").createServer((q, a) => { console.log(q.method, q.url); a.end("it works"); }).listen(8000)`;
const wait = "until curl -sf -o /dev/null http://127.0.0.1:8000/; do sleep 0.05; done";

await new Client().sandboxes.with({ timeout_s: 300 }, async (box) => {
  const server = await box.processes.start(["node", "-e", program], { label: "web" });
  await box.run(wait, { timeout_s: 30, check: true });
  const page = await box.run("curl -s http://127.0.0.1:8000/page", { check: true });
  console.log(page.stdout);
  if (page.stdout !== "it works") throw new Error("it does not");

  await server.signal("SIGTERM", "tree");
  console.log("the server ended by", (await server.wait()).signal);
  const { stdout } = await server.result();
  if (!stdout.includes("GET /page")) throw new Error(stdout);
});
console.log("done");

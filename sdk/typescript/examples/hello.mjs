// Make a sandbox, run something in it, and let it go.
import { Client } from "warren-sandbox";

const client = new Client(); // WARREN_URL and WARREN_API_KEY say where and who
await client.sandboxes.with({ timeout_s: 300 }, async (box) => {
  const result = await box.run(["node", "-p", "os.hostname()"], { check: true });
  console.log("hello from", result.stdout.trim());
  if (result.stdout.trim() !== box.id) throw new Error("not the sandbox's own name");
});
console.log("done");

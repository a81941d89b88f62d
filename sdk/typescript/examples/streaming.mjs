// Watch a command while it works, and come back to one that nobody watched.
import { Client } from "warren-sandbox";

const count = "for i in 1 2 3; do echo step $i; sleep 0.1; done; echo careful >&2; exit 7";

await new Client().sandboxes.with({ timeout_s: 300 }, async (box) => {
  for await (const event of await box.stream(count)) {
    if (event.type === "stdout" || event.type === "stderr") process.stdout.write(`${event.type}: ${event.text}`);
    else if (event.type === "exit") console.log(`exit code ${event.exit_code} after ${event.duration_ms} ms`);
  }

  // This one goes on by itself. Any client may attach later and gets all of it.
  const { number } = await box.processes.start(count, { label: "counter" });
  const later = await box.processes.get(number);
  const result = await later.result();
  if (result.exit_code !== 7 || result.stdout !== "step 1\nstep 2\nstep 3\n") throw new Error(result.stdout);
});
console.log("done");

// What no program may do without a grant, tried. The default export says of each
// attempt whether it was refused, and by which error.

const [file, newFile, port, variable] = Deno.args;

const attempts = {
  "read a file": () => Deno.readTextFile(file),
  "import a file": () => import(`file://${file}`, { with: { type: "text" } }),
  "write a file": () => Deno.writeTextFile(newFile, "probe"),
  "connect to the network": () =>
    Deno.connect({ hostname: "127.0.0.1", port: Number(port) }),
  "see the environment": () => {
    if (!(variable in Deno.env.toObject())) {
      throw Object.assign(new Error(), { name: "not there" });
    }
  },
  "start a program": () =>
    new Deno.Command("/bin/sh", { args: ["-c", `echo >${newFile}`] }).output(),
};

const outcome = {};
for (const [name, attempt] of Object.entries(attempts)) {
  try {
    await attempt();
    outcome[name] = "";
  } catch (error) {
    outcome[name] = error.name;
  }
}
export default outcome;

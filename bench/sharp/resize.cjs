// Decodes and resizes a file in memory: node resize.cjs FILE EDGE COUNT. Prints the CPU milliseconds of each time.
const fs = require("fs");
const sharp = require("sharp");

const [file, edge, count] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const data = fs.readFileSync(file);
sharp.concurrency(1);
sharp.cache(false);

async function once() {
  const before = process.cpuUsage();
  await sharp(data).resize(edge, edge, { fit: "inside" }).raw().toBuffer();
  const used = process.cpuUsage(before);
  return (used.user + used.system) / 1000;
}

(async () => {
  const taken = [];
  await once();
  for (let at = 0; at < count; at++) taken.push(await once());
  console.log(JSON.stringify({ version: sharp.versions.sharp, taken }));
})();

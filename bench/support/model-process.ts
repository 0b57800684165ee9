// The stand-in model in a process of its own, so that its work is nobody's time but its own: prints its address.
import { startModel } from '../../src/testing/index.ts';

const model = await startModel();
process.stdout.write(`${model.url}\n`);
process.stdin.resume().once('end', () => void model.close().then(() => process.exit(0)));

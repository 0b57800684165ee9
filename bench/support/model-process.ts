// The stand-in model in its own process, so that it does not slow down what is measured. Prints its address.
import { startModel } from '../../src/testing/index.ts';

const model = await startModel();
process.stdout.write(`${model.url}\n`);
process.stdin.resume().once('end', () => void model.close().then(() => process.exit(0)));

// Loaded before a program of ours (`--import`), so that it gets the doubles when it imports the packages of the vendors.
import { registerHooks } from 'node:module';

const DOUBLES: Readonly<Record<string, string>> = {
  '@vercel/sandbox': new URL('vercel.ts', import.meta.url).href,
  e2b: new URL('e2b.ts', import.meta.url).href,
};

registerHooks({
  resolve(specifier, context, next) {
    const url = DOUBLES[specifier];
    return url === undefined ? next(specifier, context) : { url, shortCircuit: true };
  },
});

// Only for the compiler (published.test.ts): checks that our use of the vendors' packages agrees with their published types, and that the
// doubles return what the packages return.
import * as vercel from '@vercel/sandbox';
import * as e2b from 'e2b';
import type { E2bSandbox, E2bSdk } from '../../src/sandboxes/vendors/e2b.ts';
import type { VercelSandbox, VercelSdk } from '../../src/sandboxes/vendors/vercel.ts';
import * as e2bDouble from './double/e2b.ts';
import * as vercelDouble from './double/vercel.ts';

/** Both the packages and the doubles have what we use. */
export const used: { readonly vercel: VercelSdk; readonly e2b: E2bSdk }[] = [
  { vercel, e2b },
  { vercel: vercelDouble, e2b: e2bDouble },
];

/** The doubles return what the packages return. Not checked: types that only the packages can construct. */
type SimpleOfVercel = Exclude<keyof VercelSandbox, 'runCommand' | 'stop'>;
export const vercelResults = (double: vercelDouble.Sandbox): Pick<vercel.Sandbox, SimpleOfVercel> => double;

type SimpleOfE2b = Exclude<keyof E2bSandbox, 'files' | 'commands'>;
export const e2bResults = (double: e2bDouble.Sandbox): Pick<e2b.Sandbox, SimpleOfE2b> => double;

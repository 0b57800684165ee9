// Only for the compiler (published.test.ts): the types that the vendors' packages publish fit what we use of them, and our doubles give
// what the packages give.
import * as vercel from '@vercel/sandbox';
import * as e2b from 'e2b';
import type { E2bSandbox, E2bSdk } from '../../src/sandboxes/vendors/e2b.ts';
import type { VercelSandbox, VercelSdk } from '../../src/sandboxes/vendors/vercel.ts';
import * as e2bDouble from './double/e2b.ts';
import * as vercelDouble from './double/vercel.ts';

/** The packages can be used as we use them, and the doubles in their place. */
export const used: { readonly vercel: VercelSdk; readonly e2b: E2bSdk }[] = [
  { vercel, e2b },
  { vercel: vercelDouble, e2b: e2bDouble },
];

/** What the doubles have is what the packages have. The rest has types that only the packages can make. */
type SimpleOfVercel = Exclude<keyof VercelSandbox, 'runCommand' | 'stop'>;
export const vercelResults = (double: vercelDouble.Sandbox): Pick<vercel.Sandbox, SimpleOfVercel> => double;

type SimpleOfE2b = Exclude<keyof E2bSandbox, 'files' | 'commands'>;
export const e2bResults = (double: e2bDouble.Sandbox): Pick<e2b.Sandbox, SimpleOfE2b> => double;

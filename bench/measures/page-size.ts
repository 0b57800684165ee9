import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Measure } from '../finding.ts';
import { initialBytes } from '../support/page-files.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const run = promisify(execFile);

/** The compressed size of what a browser loads before the page shows anything. */
const measure: Measure = async () => {
  await run(process.execPath, [`${root}scripts/page.js`], { env: { ...process.env, NODE_ENV: 'production' } });
  const { scripts, styles } = initialBytes(`${root}dist/page`);
  return [
    {
      name: 'initial script of the page',
      value: scripts / 1_000,
      unit: 'KB',
      target: { kind: 'must', most: 200 },
      note: `gzip: the script of the document and all that it imports at once; styles come to ${(styles / 1_000).toFixed(1)} KB`,
    },
  ];
};

export default measure;

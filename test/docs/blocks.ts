import { execFileSync } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

export function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

/** The documents for users. Without the decisions: they describe the day on which they were made, and are not kept up to date. */
export const DOCUMENTS = globSync(['*.md', 'docs/**/*.md'], { cwd: ROOT, exclude: ['docs/decisions/**'] }).toSorted();

export interface Block {
  /** `docs/http.md:42` */
  readonly at: string;
  readonly code: string;
}

/** The code blocks of a document in these languages. */
export function blocksIn(path: string, text: string, languages: readonly string[]): Block[] {
  return [...text.matchAll(/^```(\w+)[^\n]*\n([\s\S]*?)^```/gm)]
    .filter(([, language = '']) => languages.includes(language))
    .map(({ index, 2: code = '' }) => ({ at: `${path}:${text.slice(0, index).split('\n').length + 1}`, code }));
}

/** Variables that a block may use without declaring them. If a block declares one of them, its own is used. */
const GLOBALS = `
import type { ConversationHandle, Permission, Throughline } from 'throughline';
declare global {
  const tl: Throughline;
  const chat: ConversationHandle;
  const user: string;
  const token: string;
  const url: string;
  const show: (text: string) => void;
  const vault: { keyOf(owner: string, agent: string): Promise<string> };
  const askThePerson: (question: Permission, context: { signal: AbortSignal }) => Promise<string>;
}
`;

const OPTIONS = {
  extends: join(ROOT, 'tsconfig.json'),
  compilerOptions: {
    lib: ['es2025', 'esnext.array', 'esnext.disposable', 'dom', 'dom.iterable', 'dom.asynciterable'],
    noUnusedLocals: false,
    noUnusedParameters: false,
    typeRoots: [join(ROOT, 'node_modules', '@types')],
    paths: {
      throughline: [join(ROOT, 'src/index.ts')],
      'throughline/client': [join(ROOT, 'src/client.ts')],
      'throughline/testing': [join(ROOT, 'src/testing/index.ts')],
      '*': [join(ROOT, 'node_modules', '*'), join(ROOT, 'test/agents/node_modules', '*')],
    },
  },
  include: ['.'],
};

/** Compiles the blocks against the sources, and returns the errors: `docs/http.md:44: …`. */
export function faultsOfBlocks(blocks: readonly Block[]): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'throughline-docs-'));
  try {
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(OPTIONS));
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
    writeFileSync(join(folder, 'globals.ts'), GLOBALS);
    const files = new Map(blocks.map((block, index) => [`block-${index}.ts`, block]));
    for (const [file, { code }] of files) {
      writeFileSync(join(folder, file), `${code}\nexport {};\n`);
    }
    return compile(folder).map((line) => {
      const [, file = '', lineNumber = '', message = line] = /^(\S+?)\((\d+),\d+\): (.*)$/.exec(line) ?? [];
      const block = files.get(file);
      if (block === undefined) return line;
      const [, path, first] = /^(.*):(\d+)$/.exec(block.at) ?? [];
      return `${path}:${Number(first) + Number(lineNumber) - 1}: ${message}`;
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function compile(folder: string): string[] {
  try {
    const args = [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', '.', '--pretty', 'false', '--singleThreaded'];
    execFileSync(process.execPath, args, {
      cwd: folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    return [];
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    return `${stdout}${stderr}`.split('\n').filter((line) => line !== '' && !line.startsWith(' '));
  }
}

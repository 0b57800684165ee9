// The paths that a document names, and the questions and examples of CONTRIBUTING.md.

const FOLDERS = ['src', 'web', 'test', 'docs', 'scripts', 'bench', 'examples', 'bin'];

/**
 * Every file or folder of this repository that the text names in backticks or links to, without anchors. A source file may be
 * named without its `src/`.
 */
export function pathsIn(text: string): string[] {
  const quoted = [...text.matchAll(/`([\w./-]+)`/g)].map(([, path = '']) => path);
  const linked = [...text.matchAll(/\]\((?!\w+:)([^)#\s]+)[^)]*\)/g)].map(([, path = '']) => path);
  const named = quoted
    .filter((path) => path.includes('/'))
    .flatMap((path) => {
      if (FOLDERS.includes(path.split('/', 1)[0] ?? '')) return [path];
      return path.endsWith('.ts') ? [`src/${path}`] : [];
    });
  return [...new Set([...named, ...linked])].filter((path) => !/[A-Z]{4,}(?!.*\.md$)/.test(path));
}

/** The end of a name that is certainly that of a file: `store.close` is none. */
const FILE = /^[\w./-]+\.(?:tsx?|js|json|md|txt)$/;

/**
 * The questions "Where would I add …?" of CONTRIBUTING.md, each with the files that its answer names. A file in a command counts too
 * (`node scripts/api.js`), and one without its folder (`list.ts`): it is named so that a reader cannot find it.
 */
export function changeRequests(contributing: string): { question: string; paths: string[] }[] {
  const section = contributing.split('\n## ').find((part) => part.startsWith('Where would I add')) ?? '';
  return section
    .split(/^(?=\*\*\d+\. )/m)
    .slice(1)
    .map((answer) => {
      const words = [...answer.matchAll(/`([^`]+)`/g)].flatMap(([, code = '']) => code.split(/\s+/));
      const paths = [...new Set([...pathsIn(answer), ...words.filter((word) => FILE.test(word))])];
      return { question: answer.split('**', 2)[1] ?? '', paths };
    });
}

/** How many sentences and names "Plain English" of CONTRIBUTING.md shows before and after. */
export function pairsBeforeAndAfter(contributing: string): number {
  const section = contributing.split('\n## ').find((part) => part.startsWith('Plain English')) ?? '';
  const rows = section.split('\n').filter((line) => line.startsWith('| '));
  return rows.filter((row) => !row.startsWith('| before')).length;
}

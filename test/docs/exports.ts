import { dirname, join } from 'node:path';
import { read } from './blocks.ts';

export interface Exported {
  /** The name that a user imports. */
  readonly name: string;
  /** `src/core/errors.ts: ErrorCode` */
  readonly at: string;
  /** The comment before the declaration, without its stars; null: there is none. */
  readonly comment: string | null;
}

const DECLARED =
  /^(\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n)?export (?:declare )?(?:async |abstract )*(?:function|class|interface|type|const) (\w+)/gm;
const ALL_REEXPORTED = /^export (?:type )?\* from '([^']+)';/gm;
const REEXPORTED = /^export (?:type )?\{([^}]*)\} from '([^']+)';/gm;

/** Everything that an entry of the package exports, with the comment of its declaration. */
export function exportsOf(entry: string): Exported[] {
  const text = read(entry);
  const own = [...declarationsIn(entry)].map(([name, comment]) => ({ name, at: `${entry}: ${name}`, comment }));
  const reexported = [...text.matchAll(REEXPORTED)].flatMap(([, names = '', from = '']) => {
    const file = join(dirname(entry), from);
    const declared = declarationsIn(file);
    return names
      .split(',')
      .map((one) => one.trim().replace(/^type /, ''))
      .filter((one) => one !== '')
      .map((one) => {
        const [name = '', alias = name] = one.split(' as ');
        return { name: alias, at: `${file}: ${name}`, comment: declared.get(name) ?? null };
      });
  });
  const all = [...text.matchAll(ALL_REEXPORTED)].flatMap(([, from = '']) => exportsOf(join(dirname(entry), from)));
  return [...own, ...reexported, ...all];
}

function declarationsIn(file: string): Map<string, string | null> {
  return new Map(
    [...read(file).matchAll(DECLARED)].map(([, comment, name = '']) => [name, comment ? withoutStars(comment) : null]),
  );
}

function withoutStars(comment: string): string {
  return comment
    .trim()
    .replace(/^\/\*\*|\*\/$/g, '')
    .split('\n')
    .map((line) => line.replace(/^\s*\* ?/, ''))
    .join('\n');
}

/** The code of its `@example`; null: there is none. */
export function exampleOf({ comment }: Exported): string | null {
  const [, code] = /@example\n([\s\S]*?)(?:\n@|$)/.exec(comment ?? '') ?? [];
  return code === undefined || code.trim() === '' ? null : code;
}

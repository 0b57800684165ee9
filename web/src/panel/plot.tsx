import { count } from '../ui/time.tsx';
import type { Points } from './amounts.ts';
import { bucketsOf, lineOf, niceTop } from './plot-line.ts';

const [WIDTH, HEIGHT, LEFT, BOTTOM] = [328, 150, 40, 18];
/** If there are more turns, they are drawn in groups, each by its largest value. */
const MOST = 240;

const LINES = {
  tokens: [
    ['read', 'in', 'var(--color-session-1)'],
    ['written', 'out', 'var(--color-session-2)'],
  ],
  cost: [['cost', 'cost', 'var(--color-session-4)']],
} as const;

/** A line for each amount over the turns, with gaps for unknown values. A vertical line where a session began. */
export function Plot({ points, of }: { points: Points; of: 'tokens' | 'cost' }) {
  const lines = LINES[of].map(([name, label, colour]) => ({ label, colour, values: bucketsOf(points[name], MOST) }));
  const top = niceTop(Math.max(0, ...lines.flatMap(({ values }) => values.map((value) => value ?? 0))));
  const [first = 1, last = 1] = [points.n[0], points.n.at(-1)];
  const steps = lines[0]?.values.length ?? 1;
  const x = (index: number) => LEFT + ((index + 0.5) / steps) * (WIDTH - LEFT);
  const y = (value: number) => 6 + (1 - value / top) * (HEIGHT - BOTTOM - 6);
  const seamAt = (n: number) => LEFT + (points.n.indexOf(n) / points.n.length) * (WIDTH - LEFT);
  const amount = (value: number) => (of === 'cost' ? `$${value}` : count(value));
  return (
    <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={described(points, of)} className="w-full">
      {[0, top / 2, top].map((value) => (
        <g key={value}>
          <line x1={LEFT} x2={WIDTH} y1={y(value)} y2={y(value)} stroke="var(--color-line)" />
          <text x={LEFT - 6} y={y(value) + 3.5} textAnchor="end" fontSize={10} fill="var(--color-muted)">
            {amount(value)}
          </text>
        </g>
      ))}
      {points.seams.map((n) => (
        <line
          key={n}
          x1={seamAt(n)}
          x2={seamAt(n)}
          y1={2}
          y2={HEIGHT - BOTTOM}
          stroke="var(--color-line-strong)"
          strokeDasharray="3 3"
        />
      ))}
      {lines.map(({ label, colour, values }) => (
        <path
          key={label}
          d={lineOf(values, x, y)}
          fill="none"
          stroke={colour}
          strokeWidth={1.75}
          strokeLinecap="round"
        />
      ))}
      {[first, last].map((n, index) => (
        <text
          key={String(index)}
          x={index === 0 ? LEFT : WIDTH}
          y={HEIGHT - 4}
          textAnchor={index === 0 ? 'start' : 'end'}
          fontSize={10}
          fill="var(--color-muted)"
        >
          turn {n}
        </text>
      ))}
    </svg>
  );
}

function described({ n, seams }: Points, of: 'tokens' | 'cost'): string {
  const what = of === 'cost' ? 'Cost' : 'Tokens in and out';
  const began = seams.length === 0 ? 'one session' : `other sessions began at turn ${seams.slice(0, 20).join(', ')}`;
  return `${what} of ${n.length} turns; ${began}. The figures are in the table below.`;
}

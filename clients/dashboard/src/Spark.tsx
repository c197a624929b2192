// The size of the context, as it went. Without numbers on it: the newest stands beside it.
const width = 48;
const height = 14;

export function Spark({ samples }: { samples: readonly number[] }) {
  if (samples.length < 2) return <svg class="spark" width={width} height={height} aria-hidden="true" />;
  const most = Math.max(...samples);
  const points = samples.map((size, n) => `${((n / (samples.length - 1)) * (width - 2) + 1).toFixed(1)},${(height - 1 - (size / most) * (height - 2)).toFixed(1)}`);
  return <svg class="spark" width={width} height={height} aria-hidden="true"><polyline points={points.join(" ")} /></svg>;
}

// The chance that a label is wrong, by what was found of others: the sums of chances.py

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const logit = (p) => Math.log(p / (1 - p));
const softplus = (x) => (x > 30 ? x : Math.log1p(Math.exp(x)));
const oddsAgainst = (quality, noVote) => Math.log((1 - quality + noVote) / (quality + noVote));

// Solve a x = b for several b at once, by elimination; a is symmetric and positive definite
function solve(a, b) {
  const n = a.length;
  const rows = a.map((row, i) => [...row, ...b[i]]);
  for (let i = 0; i < n; i++) {
    for (let j = i + 1; j < n; j++) {
      const factor = rows[j][i] / rows[i][i];
      if (factor) for (let k = i; k < rows[j].length; k++) rows[j][k] -= factor * rows[i][k];
    }
  }
  for (let i = n - 1; i >= 0; i--) {
    for (let k = n; k < rows[i].length; k++) {
      for (let j = i + 1; j < n; j++) rows[i][k] -= rows[i][j] * rows[j][k];
      rows[i][k] /= rows[i][i];
    }
  }
  return rows.map((row) => row.slice(n));
}

// A label has three inputs: 1, the odds against it, and a 1 for its class. cases: {odds, given, wrong}
class Chances {
  constructor(prior, nClasses, cases) {
    const means = [prior.level[0], prior.slope[0]], precisions = [prior.level[1] ** -2, prior.slope[1] ** -2];
    for (let i = 0; i < nClasses; i++) {
      means.push(prior.ofClass[0]);
      precisions.push(prior.ofClass[1] ** -2);
    }
    const loss = (weights) => {
      let sum = 0;
      weights.forEach((weight, i) => (sum += (precisions[i] * (weight - means[i]) ** 2) / 2));
      for (const each of cases) sum += softplus(this.score(each, weights)) - each.wrong * this.score(each, weights);
      return sum;
    };
    this.weights = [...means];
    for (let step = 0; step < 50; step++) {
      const slope = this.weights.map((weight, i) => -precisions[i] * (weight - means[i]));
      this.curvature = precisions.map((precision, i) => precisions.map((_, j) => (i === j ? precision : 0)));
      for (const each of cases) {
        const p = sigmoid(this.score(each, this.weights));
        const inputs = this.inputs(each);
        for (const [i, x] of inputs) {
          slope[i] += x * (each.wrong - p);
          for (const [j, y] of inputs) this.curvature[i][j] += p * (1 - p) * x * y;
        }
      }
      const move = solve(this.curvature, slope.map((value) => [value])).map((row) => row[0]);
      const before = loss(this.weights);
      let size = 1, next = this.weights;
      do {
        next = this.weights.map((weight, i) => weight + size * move[i]);
        size /= 2;
      } while (size > 1e-6 && loss(next) > before);
      this.weights = next;
      if (Math.max(...move.map(Math.abs)) < 1e-6) break;
    }
  }

  inputs(label) {
    return [[0, 1], [1, label.odds], [2 + label.given, 1]];
  }

  score(label, weights = this.weights) {
    return weights[0] + weights[1] * label.odds + weights[2 + label.given];
  }

  of(label) {
    return sigmoid(this.score(label));
  }

  // Share of wrong labels among all: known ones, and others in groups of alike: {odds, given, count}
  share(size, nWrong, groups, width) {
    const slope = this.weights.map(() => 0);
    let expected = nWrong, variance = 0;
    for (const group of groups) {
      const p = this.of(group);
      expected += group.count * p;
      variance += group.count * p * (1 - p);
      for (const [i, x] of this.inputs(group)) slope[i] += (group.count * p * (1 - p) * x) / size;
    }
    const moved = solve(this.curvature, slope.map((value) => [value])).map((row) => row[0]);
    const deviation = Math.sqrt(slope.reduce((sum, value, i) => sum + value * moved[i], 0) + variance / size ** 2);
    const share = Math.min(Math.max(expected / size, 1e-6), 1 - 1e-6);
    const reach = (width * deviation) / (share * (1 - share));
    return {
      share,
      low: Math.max(sigmoid(logit(share) - reach), nWrong / size),
      high: sigmoid(logit(share) + reach),
    };
  }
}

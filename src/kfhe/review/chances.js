// The probability that a label is wrong, given reviewed labels: the same as in kfhe/audit/chances.py

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const logit = (p) => Math.log(p / (1 - p));
const STEPS = Array.from({ length: 25 }, (_, i) => (i - 12) / 4);
const THREE = 3;
const softplus = (x) => (x > 30 ? x : Math.log1p(Math.exp(x)));

// Rows of a matrix, symmetric and positive definite in its first columns, with zeros below their diagonal
function eliminated(rows) {
  for (let i = 0; i < rows.length; i++) {
    for (let j = i + 1; j < rows.length; j++) {
      const factor = rows[j][i] / rows[i][i];
      if (factor) for (let k = i; k < rows[j].length; k++) rows[j][k] -= factor * rows[i][k];
    }
  }
  return rows;
}

// Solve a x = b for several b at once
function solve(a, b) {
  const n = a.length, rows = eliminated(a.map((row, i) => [...row, ...b[i]]));
  for (let i = n - 1; i >= 0; i--) {
    for (let k = n; k < rows[i].length; k++) {
      for (let j = i + 1; j < n; j++) rows[i][k] -= rows[i][j] * rows[j][k];
      rows[i][k] /= rows[i][i];
    }
  }
  return rows.map((row) => row.slice(n));
}

const logDeterminant = (a) => eliminated(a.map((row) => [...row])).reduce((sum, row, i) => sum + Math.log(row[i]), 0);

// Cumulative normal distribution, by Abramowitz and Stegun 7.1.26
function normalBelow(x) {
  const t = 1 / (1 + (0.3275911 * Math.abs(x)) / Math.SQRT2);
  const tail = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  const half = (tail * Math.exp((-x * x) / 2)) / 2;
  return x > 0 ? 1 - half : half;
}

// One explanation, fitted to labels. A label has three inputs: 1, the odds against it, and a 1 for its class.
class Fit {
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
    const deviations = precisions.reduce((sum, precision) => sum - Math.log(precision) / 2, 0);
    this.evidence = -loss(this.weights) - deviations - logDeterminant(this.curvature) / 2;
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

  // Possible shares of wrong labels, from the distribution of the weights, and the random variation of each
  shares(size, nWrong, groups) {
    const slope = this.weights.map(() => 0);
    let expected = nWrong, variance = 0;
    for (const group of groups) {
      const p = this.of(group);
      expected += group.count * p;
      variance += group.count * p * (1 - p);
      for (const [i, x] of this.inputs(group)) slope[i] += (group.count * p * (1 - p) * x) / size;
    }
    const moved = solve(this.curvature, slope.map((value) => [value])).map((row) => row[0]);
    const share = Math.min(Math.max(expected / size, 1e-6), 1 - 1e-6);
    const deviation = Math.sqrt(slope.reduce((sum, value, i) => sum + value * moved[i], 0)) / (share * (1 - share));
    return {
      at: STEPS.map((step) => sigmoid(logit(share) + step * deviation)),
      deviation: Math.max(Math.sqrt(variance) / size, 1e-6),
    };
  }
}

// All explanations, weighted by how well they predicted the cases: {odds, given, wrong}
class Chances {
  constructor(explanations, nClasses, cases) {
    this.nRight = cases.filter((each) => !each.wrong).length;
    this.fits = explanations.map((prior) => new Fit(prior, nClasses, cases));
    const most = Math.max(...this.fits.map((fit) => fit.evidence));
    const chances = this.fits.map((fit) => Math.exp(fit.evidence - most)), sum = chances.reduce((a, b) => a + b);
    this.believed = chances.map((chance) => chance / sum);
  }

  of(label) {
    return this.fits.reduce((sum, fit, i) => sum + this.believed[i] * fit.of(label), 0);
  }

  // Range of the share of wrong labels: reviewed ones, and groups of similar others: {odds, given, count}
  range(size, nWrong, groups, chance) {
    const shares = this.fits.map((fit) => fit.shares(size, nWrong, groups));
    const densities = STEPS.map((step) => Math.exp((-step * step) / 2)), total = densities.reduce((a, b) => a + b);
    const below = (share) => shares.reduce((sum, { at, deviation }, i) => {
      const ofFit = at.reduce((part, each, j) => part + densities[j] * normalBelow((share - each) / deviation), 0);
      return sum + (this.believed[i] * ofFit) / total;
    }, 0);
    const quantile = (chance) => {
      let low = 0, high = 1;
      for (let step = 0; step < 40; step++) {
        const middle = (low + high) / 2;
        if (below(middle) < chance) low = middle;
        else high = middle;
      }
      return high;
    };
    return {
      low: Math.max(quantile((1 - chance) / 2), nWrong / size),
      high: Math.min(Math.max(quantile((1 + chance) / 2), (nWrong + THREE) / size), 1 - this.nRight / size),
    };
  }
}

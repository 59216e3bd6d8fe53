"""The page that sets a study beside the paper's."""

import pytest

from benchmarks.reproduction import main, reproduction
from kfhe.study.analyse import Analysis
from kfhe.study.errors import StudyError
from kfhe.study.run import run


def test_the_reproduction_says_what_holds(paper_study, tmp_path):
    main(paper_study, tmp_path / "reproduction.md")
    text = (tmp_path / "reproduction.md").read_text(encoding="utf-8")
    assert "- KFHE-e: within 0.03 of the paper on 27 of 27, +0.0000 on average" in text
    assert "| iris | 0.9433 | 0.9433 | 0.9457 |" in text
    assert "- `physio`: Its origin is not known" in text
    assert "one-tailed" in text
    assert text.count("### Wilcoxon signed-ranks test") == text.count("### Post-hoc") == 5
    assert text.count("- Holds:") == 10
    assert text.count("- **Does not hold**:") == 1


def test_without_the_papers_data_there_is_no_reproduction(plan, tmp_path):
    run(plan, tmp_path / "r.sqlite", n_jobs=1)
    with pytest.raises(StudyError, match="nothing of this study is in the paper"):
        reproduction(Analysis(tmp_path / "r.sqlite"))

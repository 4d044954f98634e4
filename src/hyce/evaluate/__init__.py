"""hyce measures itself: questions, answers, verdicts, figures.

The way of an evaluation (algorithm 1 of the HyCE paper, arXiv:2501.14733, section 4):

    generate    passages and commands -> questions with reference answers -> filter -> a question file
    run         variants of the settings x questions -> answers -> verdicts -> a run's folder
    report      a run's folder -> the paper's second table, with intervals, as Markdown, JSON and HTML

and what needs no judge: `retrieval`, `routing`, `similarity` (the paper's first table), `injection`, `gate`.

Which module does what:

    generation/   sample, material -> writing -> filter; making: one question, generate: all of them;
                  estimate: what it takes
    running/      variants -> prepare (indexes, keys) -> experiment (asking, replay) -> runs;
                  campaign: all of it; cost: calls and tokens
    report/       outcomes -> summary (scores, reliability, labels), compare -> plots, tables, markdown, page
    finding/      retrieval (evidence, ranking), routing, similarity (encoders), gate (gate_file, baseline);
                  measured: figures with intervals
    judge         an answer -> a verdict
    injection     orders that strangers hide; injections: the cases
    all of them   records; sets: question files; journal, calls: what is kept; work: many tasks at the same
                  time; forms: of models' replies; statistics; leaving: which
                  questions may not leave the site
"""

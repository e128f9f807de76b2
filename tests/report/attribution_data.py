"""Data of an explanation, as `AttributionResult.to_dict()` returns them."""


def create_data(*, faithfulness=True, attribution=True):
    """Four tokens, two methods, two heads; one token is written as HTML."""
    number = {
        "value": 0.31,
        "low": 0.12,
        "high": 0.5,
        "examples": 8,
        "this_prediction": 0.4,
        "deletion": {"value": 0.3, "low": 0.1, "high": 0.5},
        "insertion": {"value": 0.32, "low": 0.1, "high": 0.5},
    }
    answer = {"id": 3, "text": " mat", "probability": 0.75, "logit": 2.5}
    curve = [-0.3, -1.0, -2.0]
    return {
        "model": "tiny",
        "source": "step 10",
        "tokens": ["The", "<b>cat</b>", "\n", "sat"],
        "token_ids": [0, 1, 2, 3],
        "position": 3,
        "answer": answer,
        "against": None,
        "predicted": answer,
        "methods": {
            "rollout": {
                "label": "attention rollout",
                "scores": [0.1, 0.6, 0.1, 0.2],
                "faithfulness": number if faithfulness else None,
            },
            "direct": {
                "label": "direct logit attribution",
                "scores": [-1.0, 2.0, 0.0, 0.5],
                "faithfulness": {**number, "value": -0.2, "low": None, "high": None}
                if faithfulness
                else None,
            },
        },
        "logit_attribution": {
            "logit": 2.5,
            "sum": 2.5,
            "parts": [
                {"name": "embedding", "kind": "embedding", "value": 1.0},
                {"name": "L0 h0", "kind": "head", "value": 2.0},
                {"name": "L0 h1", "kind": "head", "value": -0.5},
            ],
            "heads": [[2.0, -0.5]],
            "sources": [],
            "agreement": 0.9,
        }
        if attribution
        else None,
        "removed_heads": [[1.5, -0.25]],
        "lens": [
            {
                "layer": "L0",
                "probability": 0.75,
                "rank": 0,
                "top": [{"id": 3, "text": " mat", "probability": 0.75}],
            }
        ],
        "head_rows": {},
        "curves": {
            "shares": [0.0, 0.5, 1.0],
            "random": {"deletion": curve, "insertion": curve[::-1]},
            "methods": {
                name: {"deletion": curve, "insertion": curve[::-1]}
                for name in ("rollout", "direct")
            },
        }
        if faithfulness
        else None,
        "notes": ["a note"],
    }

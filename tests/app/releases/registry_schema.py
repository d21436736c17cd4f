"""The part of the schema of the OpenDP deployments registry that our entries use: its facts, in our words.

Read in opendp/deployments-registry-data, schemas/deployments-schema.yaml, and in the entry deployments/mhusage.yaml of
September 2026. There every object is closed. Only the parts listed as required must be present.
"""

from typing import Any

__all__ = ["REGISTRY_SCHEMA"]

Json = dict[str, Any]

TEXT: Json = {"type": "string"}
SOME_TEXTS: Json = {"type": "array", "items": TEXT, "minItems": 1}


def one_of(*values: str) -> Json:
    return {"type": "string", "enum": list(values)}


def closed(*required: str, **properties: Json) -> Json:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": properties,
    }


BASIC = closed(
    *("name", "data_curators", "description", "intended_use", "data_product_type", "data_product_region"),
    "publication_date",
    name=TEXT,
    data_curators={
        "type": "array",
        "minItems": 1,
        "items": closed(
            "data_curator_name",
            "data_curator_type",
            data_curator_name=TEXT,
            data_curator_type=one_of("Government", "Industry", "Nonprofit"),
        ),
    },
    description=TEXT,
    intended_use=TEXT,
    data_product_type=one_of(
        *("Summary statistics", "Machine learning model", "Dataset", "Synthetic data", "Interactive API", "SQL queries")
    ),
    data_product_region=TEXT,
    data_product_sector=one_of("Technology", "Healthcare", "Education", "Government", "Energy", "Finance"),
    publication_date={"type": "string", "format": "date"},
)
DP_VARIANT = closed(
    variant_name=one_of("Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"),
    data_domain=TEXT,
    unprotected_quantities=TEXT,
)
PRIVACY_LOSS = closed(
    privacy_unit=TEXT,
    privacy_unit_details=TEXT,
    privacy_parameters=closed(epsilon={"type": "number"}, delta={"type": ["number", "string"]}, rho={"type": "number"}),
    privacy_parameters_details=TEXT,
)
DEPLOYMENT_MODEL = closed(
    model_name=one_of("Local", "Central", "Shuffle", "Federated", "Varies"),
    model_name_details=TEXT,
    actors=TEXT,
    release_type=one_of("One release", "Many releases"),
    release_type_details=TEXT,
    data_source_type=one_of("Static", "Dynamic"),
    data_source_type_details=TEXT,
    access_type=one_of("Interactive", "Non-interactive"),
    access_type_details=TEXT,
)

REGISTRY_SCHEMA: Json = closed(
    *("url_slug", "status", "tier", "deployment"),
    url_slug=TEXT,
    status=one_of(
        *("Converted", "Draft", "Pending", "Changes Required", "Approved", "Approved (Update Requested)"),
        "Approved (Pending)",
    ),
    tier={"type": "integer", "enum": [1, 2, 3]},
    deployment=closed(
        "basic",
        basic=BASIC,
        dp_variant=DP_VARIANT,
        privacy_loss=PRIVACY_LOSS,
        deployment_model=DEPLOYMENT_MODEL,
        accounting=closed(post_processing=TEXT, composition=TEXT),
        implementation=closed(preprocessing_and_hyperparameter_tuning=TEXT, mechanisms=TEXT, justification=TEXT),
        administrative=closed("registry_authors", sources=TEXT, registry_authors=SOME_TEXTS),
    ),
)

"""Methods of contact: events, sequential impulses and compliant forces."""
